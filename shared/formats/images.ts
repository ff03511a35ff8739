import { z } from "zod";
import { invalidValue } from "#errors";
import { type JsonObject, object, omitNullish } from "#json";
import { chatCodec } from "./chat/codec.ts";
import { validate } from "./errors.ts";
import { fieldsOfOneModel } from "./routing-fields.ts";
import type { Codec, ModelInput, ParsedCall, UploadRef } from "./types.ts";
import { findUploads } from "./uploads.ts";

const buybackToken = z
  .string()
  .nullish()
  .describe(
    "Only for x402 payments: the mint of the eligible token that is bought back. Any other mint gets a 400, as does this field in a request with a key",
  );

/** The request of docs/api/inference.md, "ImageRequest". The model's own parameters are additional top-level fields. */
export const imageRequest = z
  .looseObject({
    model: z.string().min(1).describe("provider/model"),
    prompt: z.string().min(1),
    n: z.int().min(1).max(4).nullish(),
    size: z
      .string()
      .regex(/^(auto|[1-9]\d{0,4}x[1-9]\d{0,4})$/, "must have the form <width>x<height>, or be auto")
      .nullish()
      .describe("`auto` (default): the model's own size"),
    response_format: z
      .enum(["url", "b64_json"])
      .nullish()
      .describe(
        "Default: `url`; for OpenAI's GPT image models and for edits with `local/image` it is `b64_json`, as in OpenAI's own API",
      ),
    buyback_token: buybackToken,
    ...fieldsOfOneModel,
  })
  .meta({ id: "ImageRequest" });

/** The request to a model that makes variations of an image without a prompt. */
export const variedImageRequest = imageRequest.extend({
  prompt: imageRequest.shape.prompt.nullish(),
  variation: z.literal(true),
});

/** The request of docs/api/inference.md, "MediaRequest". */
export const mediaRequest = z
  .looseObject({
    model: z.string().min(1).describe("provider/model"),
    input: z
      .record(z.string(), z.unknown())
      .describe("The model's own parameters, as described by its `x_input_schema`"),
    buyback_token: buybackToken,
    ...fieldsOfOneModel,
  })
  .meta({ id: "MediaRequest" });

/** The cost of media is bounded by the model's input, not by tokens. */
const noTokens = { inputBytes: 0, messages: 0, parts: [], choices: 1 } as const;

export interface MediaInput {
  readonly input: ModelInput;
  readonly uploads: readonly UploadRef[];
}

const media = (input: MediaInput, model: string, token: string | null | undefined): ParsedCall => ({
  model,
  ...input,
  ...(token != null && { buybackToken: token }),
  stream: false,
  size: noTokens,
  textBytes: 0,
  features: new Map(),
});

/** Fields that never contain the id of an upload. */
const plainFields = ["model", "prompt", "n", "size", "response_format", "stream", "user", "buyback_token"];

/** Returns the parameters of a validated image call. Throws `invalidValue` if they have too many values. */
export function imageInput(request: JsonObject): MediaInput {
  const uploads = findUploads(request, "", "image", plainFields);
  const { model: _, buyback_token: __, response_format: ___, stream: ____, user: _____, ...input } = request;
  return { input: { value: omitNullish(input), at: "" }, uploads };
}

/** Returns the parameters of a validated media call. Throws `invalidValue` if they have too many values. */
export const mediaInput = ({ input }: JsonObject): MediaInput => ({
  uploads: findUploads(input, "input"),
  input: { value: omitNullish(object(input)), at: "input" },
});

export const imagesCodec: Codec = {
  ...chatCodec,
  parse(body) {
    // Precedes validation, which is slow on a million fields.
    const input = imageInput(object(body));
    const schema = object(body)["variation"] === true ? variedImageRequest : imageRequest;
    const { model, buyback_token, stream } = validate(schema, body);
    if (stream) throw invalidValue("stream", "stream: images cannot be streamed.");
    return media(input, model, buyback_token);
  },
};

export const mediaCodec: Codec = {
  ...chatCodec,
  parse(body) {
    const input = mediaInput(object(body));
    const { model, buyback_token } = validate(mediaRequest, body);
    return media(input, model, buyback_token);
  },
};
