import { z } from "zod";
import { invalidValue } from "#errors";
import { chatCodec } from "./chat/codec.ts";
import { valid } from "./invalid.ts";
import { object } from "./loose.ts";
import type { Codec, ParsedCall } from "./types.ts";
import { findUploads } from "./uploads.ts";

const buybackToken = z
  .string()
  .nullish()
  .describe(
    "Callers by x402 only: the eligible token mint that receives the buyback. Any other, or one with a key, is 400",
  );

/** Specification, part 2, "ImageRequest"; the model's own parameters stand beside these. */
export const imageRequest = z
  .looseObject({
    model: z.string().min(1).describe("provider/model"),
    prompt: z.string().min(1),
    n: z.int().min(1).max(4).nullish(),
    size: z
      .string()
      .regex(/^[1-9]\d{0,4}x[1-9]\d{0,4}$/, "must have the form <width>x<height>")
      .nullish(),
    response_format: z.enum(["url", "b64_json"]).nullish(),
    buyback_token: buybackToken,
  })
  .meta({ id: "ImageRequest" });

/** Specification, part 2, "MediaRequest". */
export const mediaRequest = z
  .looseObject({
    model: z.string().min(1).describe("provider/model"),
    input: z.record(z.string(), z.unknown()).describe("The model's own parameters: its `x_input_schema`"),
    buyback_token: buybackToken,
  })
  .meta({ id: "MediaRequest" });

/** Their cost has no bound in tokens: it is worked out from the input. */
const noTokens = { inputBytes: 0, messages: 0, parts: [], choices: 1 } as const;

const media = (
  call: Pick<ParsedCall, "model" | "input" | "uploads">,
  token: string | null | undefined,
): ParsedCall => ({
  ...call,
  ...(token != null && { buybackToken: token }),
  stream: false,
  size: noTokens,
  textBytes: 0,
  features: new Map(),
});

/** Providers take an absent field where callers write null. */
const given = (fields: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));

/** What is never the id of an upload, whatever it looks like. */
const plainFields = ["model", "prompt", "n", "size", "response_format", "stream", "user", "buyback_token"];

export const imagesCodec: Codec = {
  ...chatCodec,
  parse(body) {
    // First: a body of a million fields goes no further.
    const uploads = findUploads(body, "", "image", plainFields);
    const { model, buyback_token, response_format: _, stream, user: __, ...input } = valid(imageRequest, body);
    if (stream) throw invalidValue("stream", "stream: images come as one answer.");
    return media({ model, input: { value: given(input), at: "" }, uploads }, buyback_token);
  },
};

export const mediaCodec: Codec = {
  ...chatCodec,
  parse(body) {
    const uploads = findUploads(object(body)["input"], "input");
    const { model, buyback_token, input } = valid(mediaRequest, body);
    return media({ model, input: { value: given(input), at: "input" }, uploads }, buyback_token);
  },
};

/** A generated file, as an answer names it. Times are unix milliseconds. */
export interface MadeFile {
  readonly url: string;
  readonly contentType: string;
  readonly bytes: number;
  readonly expiresAt: number;
  /** What the provider says of it. */
  readonly about: Readonly<Record<string, unknown>>;
}

const seconds = (ms: number) => Math.floor(ms / 1000);

/** Since when there is what an answer tells of, and until when. Unix milliseconds. */
interface Life {
  readonly createdAt: number;
  readonly expiresAt: number;
}

/** An image of an answer: where it is, until when, or all of it. */
type MadeImage = (Pick<MadeFile, "url" | "expiresAt"> | { readonly b64_json: string }) & Pick<MadeFile, "about">;

/** Specification, part 2, "ImageResponse". */
export const imageAnswer = ({ createdAt, expiresAt }: Life, images: readonly MadeImage[]) => ({
  created: seconds(createdAt),
  expires_at: seconds(expiresAt),
  data: images.map(({ about, ...image }) => {
    const { expiresAt: until, ...where } = { expiresAt, ...image };
    return { ...about, ...where, expires_at: seconds(until) };
  }),
});

/** Specification, part 2, "MediaResponse". */
export const mediaAnswer = (
  ours: Life & { readonly id: string; readonly model: string },
  output: Readonly<Record<string, unknown>>,
  files: readonly MadeFile[],
) => ({
  id: ours.id,
  object: "media.generation" as const,
  created: seconds(ours.createdAt),
  model: ours.model,
  expires_at: seconds(ours.expiresAt),
  output,
  files: files.map(({ url, contentType, bytes, expiresAt, about }) => ({
    ...about,
    url,
    content_type: contentType,
    bytes,
    expires_at: seconds(expiresAt),
  })),
});
