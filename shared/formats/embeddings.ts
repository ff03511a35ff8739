import { z } from "zod";
import { upstreamError } from "#errors";
import { chatCodec } from "./chat/codec.ts";
import { valid } from "./invalid.ts";
import type { Codec } from "./types.ts";

const input = z.string().min(1, "must not be empty");

/** Specification, part 2, "EmbeddingsRequest"; fields that it does not name pass through. */
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
    const { model, input } = valid(embeddingsRequest, body);
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

const answer = z.looseObject({
  data: z.array(z.looseObject({ index: z.int(), embedding: z.union([z.string(), z.array(z.number())]) })),
  usage: z.unknown().optional(),
});

/** The provider's answer in the encoding that was asked for, whatever the provider made of it; ordered and complete. */
export function finishEmbeddings(response: unknown, request: Readonly<Record<string, unknown>>, model: string) {
  const parsed = answer.safeParse(response);
  const expected = Array.isArray(request["input"]) ? request["input"].length : 1;
  const data = parsed.success ? parsed.data.data.toSorted((a, b) => a.index - b.index) : [];
  if (data.length !== expected || data.some((item, index) => item.index !== index))
    throw upstreamError("The upstream's answer is not a list of embeddings.");
  const base64 = request["encoding_format"] === "base64";
  return {
    object: "list" as const,
    model,
    data: data.map(({ index, embedding }) => ({
      object: "embedding" as const,
      index,
      embedding: base64 ? toBase64(embedding) : toNumbers(embedding),
    })),
    usage: parsed.data?.usage,
  };
}

// Base64 is little-endian float32, as OpenAI's clients decode it; so are the machines that this runs on.
const toBase64 = (embedding: string | number[]): string =>
  typeof embedding === "string" ? embedding : Buffer.from(Float32Array.from(embedding).buffer).toString("base64");

function toNumbers(embedding: string | number[]): number[] {
  if (typeof embedding !== "string") return embedding;
  const bytes = Buffer.from(embedding, "base64");
  return Array.from({ length: bytes.length >> 2 }, (_, i) => bytes.readFloatLE(i * 4));
}
