import { z } from "zod";
import { invalidValue } from "#errors";
import { chatCodec } from "./chat/codec.ts";
import { validate } from "./errors.ts";
import { given, object } from "./json.ts";
import { providerField } from "./routing.ts";
import type { Codec, ParsedCall } from "./types.ts";
import { findUploads } from "./uploads.ts";

const buybackToken = z
  .string()
  .nullish()
  .describe(
    "Callers by x402 only: the eligible token mint that receives the buyback. Any other, or one with a key, is 400",
  );

/** docs/api/inference.md, "ImageRequest"; the model's own parameters are further top-level fields. */
export const imageRequest = z
  .looseObject({
    model: z.string().min(1).describe("provider/model"),
    prompt: z.string().min(1),
    n: z.int().min(1).max(4).nullish(),
    size: z
      .string()
      .regex(/^(auto|[1-9]\d{0,4}x[1-9]\d{0,4})$/, "must have the form <width>x<height>, or be auto")
      .nullish()
      .describe("`auto`, as without it: the model's own size"),
    response_format: z
      .enum(["url", "b64_json"])
      .nullish()
      .describe(
        "Default: `url`; for OpenAI's GPT image models, and edits by `local/image`, `b64_json`, as in OpenAI's own API",
      ),
    buyback_token: buybackToken,
    ...providerField,
  })
  .meta({ id: "ImageRequest" });

/** Of the models that make variations of an image without a prompt. */
export const variedImageRequest = imageRequest.extend({
  prompt: imageRequest.shape.prompt.nullish(),
  variation: z.literal(true),
});

/** docs/api/inference.md, "MediaRequest". */
export const mediaRequest = z
  .looseObject({
    model: z.string().min(1).describe("provider/model"),
    input: z.record(z.string(), z.unknown()).describe("The model's own parameters: its `x_input_schema`"),
    buyback_token: buybackToken,
    ...providerField,
  })
  .meta({ id: "MediaRequest" });

/** The cost of media is bounded by the model's input, not by tokens. */
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

/** Fields that never hold the id of an upload. */
const plainFields = ["model", "prompt", "n", "size", "response_format", "stream", "user", "buyback_token"];

export const imagesCodec: Codec = {
  ...chatCodec,
  parse(body) {
    // Before validation, which is slow on a million fields.
    const uploads = findUploads(body, "", "image", plainFields);
    const request = object(body)["variation"] === true ? variedImageRequest : imageRequest;
    const { model, buyback_token, response_format: _, stream, user: __, ...input } = validate(request, body);
    if (stream) throw invalidValue("stream", "stream: images cannot be streamed.");
    return media({ model, input: { value: given(input), at: "" }, uploads }, buyback_token);
  },
};

export const mediaCodec: Codec = {
  ...chatCodec,
  parse(body) {
    const uploads = findUploads(object(body)["input"], "input");
    const { model, buyback_token, input } = validate(mediaRequest, body);
    return media({ model, input: { value: given(input), at: "input" }, uploads }, buyback_token);
  },
};
