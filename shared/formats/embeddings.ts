import { z } from "zod";
import { chatCodec } from "./chat/codec.ts";
import { validate } from "./errors.ts";
import type { Codec } from "./types.ts";

const input = z.string().min(1, "must not be empty");

/** docs/api/inference.md, "EmbeddingsRequest"; unknown fields pass through. */
export const embeddingsRequest = z
  .looseObject({
    model: z.string().min(1),
    input: z.union([input, z.array(input).min(1).max(256)]).describe("A text, or up to 256 texts"),
    encoding_format: z.enum(["float", "base64"]).nullish(),
    dimensions: z.int().positive().max(65_536).nullish(),
  })
  .meta({ id: "EmbeddingsRequest" });

export const embeddingsCodec: Codec = {
  ...chatCodec,
  parse(body, bodyBytes) {
    const { model, input } = validate(embeddingsRequest, body);
    return {
      model,
      stream: false,
      textBytes: [input].flat().reduce((sum, text) => sum + Buffer.byteLength(text), 0),
      size: {
        inputBytes: bodyBytes,
        messages: Array.isArray(input) ? input.length : 1,
        parts: [],
        choices: 1,
      },
      features: new Map(),
      uploads: [],
    };
  },
};
