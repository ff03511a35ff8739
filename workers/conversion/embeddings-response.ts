import { z } from "zod";
import { upstreamError } from "#errors";

const answer = z.looseObject({
  data: z.array(z.looseObject({ index: z.int(), embedding: z.union([z.string(), z.array(z.number())]) })),
  usage: z.unknown().optional(),
});

/** The provider's answer in the requested encoding, ordered. Throws `upstreamError` if it is incomplete. */
export function completeEmbeddings(response: unknown, request: Readonly<Record<string, unknown>>, model: string) {
  const parsed = answer.safeParse(response);
  const { input } = request;
  // The tokens of one text are a list, too.
  const expected = Array.isArray(input) && typeof input[0] !== "number" ? input.length : 1;
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

// OpenAI's clients decode base64 as little-endian float32, which is the byte order of all supported machines.
const toBase64 = (embedding: string | number[]): string =>
  typeof embedding === "string" ? embedding : Buffer.from(Float32Array.from(embedding).buffer).toString("base64");

function toNumbers(embedding: string | number[]): number[] {
  if (typeof embedding !== "string") return embedding;
  const bytes = Buffer.from(embedding, "base64");
  return Array.from({ length: bytes.length >> 2 }, (_, i) => bytes.readFloatLE(i * 4));
}
