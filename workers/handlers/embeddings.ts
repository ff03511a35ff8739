import { z } from "zod";
import { upstreamError } from "#errors";
import { embeddingsRequestOf } from "#formats";
import type { JsonObject } from "#json";
import { nextTurnIfLarge } from "#platform/concurrency/next-turn";
import { promptTokens, tokenUsage, withCallerFields } from "../conversion/index.ts";
import { vectorValues } from "../providers/index.ts";
import type { Answer, CallContext } from "../run-call/context.ts";
import { jsonCall } from "./json-call.ts";
import { withTenantIds } from "./tenant-ids.ts";

const answer = z.looseObject({
  data: z.array(z.looseObject({ index: z.int(), embedding: z.unknown() })),
  usage: z.unknown().optional(),
});

const invalid = () => upstreamError("The upstream's response is not a list of embeddings.");

/** The tokens of one text are also a list. */
const isList = (input: unknown): input is readonly unknown[] => Array.isArray(input) && typeof input[0] !== "number";

/** The provider's embeddings in the order of the input, and its usage. Throws `upstreamError` if one is missing. */
export function embeddingsOf(response: unknown, { input }: Readonly<Record<string, unknown>>) {
  const parsed = answer.safeParse(response);
  const expected = isList(input) ? input.length : 1;
  const data = parsed.success ? parsed.data.data.toSorted((a, b) => a.index - b.index) : [];
  if (data.length !== expected || data.some((item, index) => item.index !== index)) throw invalid();
  return { embeddings: data.map(({ embedding }) => embedding), usage: parsed.data?.usage };
}

/** One embedding as JSON in the requested encoding. Throws `upstreamError` if it is something else. */
export function embeddingText(embedding: unknown, encoding: unknown): string {
  if (typeof embedding !== "string" && !isVector(embedding)) throw invalid();
  return JSON.stringify(encoding === "base64" ? toBase64(embedding) : toNumbers(embedding));
}

/** Checked by hand, because zod takes a tenth of a second for a million numbers. */
const isVector = (embedding: unknown): embedding is readonly number[] =>
  Array.isArray(embedding) && embedding.every(Number.isFinite);

// OpenAI's clients decode base64 as little-endian float32, which is the byte order of all supported machines.
const toBase64 = (embedding: string | readonly number[]): string =>
  typeof embedding === "string" ? embedding : Buffer.from(Float32Array.from(embedding).buffer).toString("base64");

function toNumbers(embedding: string | readonly number[]): readonly number[] {
  if (typeof embedding !== "string") return embedding;
  const bytes = Buffer.from(embedding, "base64");
  return Array.from({ length: bytes.length >> 2 }, (_, i) => bytes.readFloatLE(i * 4));
}

interface EmbeddingsCall {
  /** The request for `/v1/embeddings`. */
  readonly request: JsonObject;
  readonly ignored: readonly (readonly [name: string, value: unknown])[];
  /** The answer as text: one piece for each embedding, whose JSON is given, between a head and a tail. */
  readonly head: (model: string) => string;
  readonly piece: (embedding: string, index: number) => string;
  readonly tail: (tokens: number) => string;
}

/** Errors name these fields of Gemini's format. */
const geminiFields = { input: "content", dimensions: "outputDimensionality" };

function geminiCall(body: JsonObject, isBatch: boolean): EmbeddingsCall {
  const { request, others } = embeddingsRequestOf(body, isBatch);
  return {
    request,
    ignored: others,
    head: () => (isBatch ? '{"embeddings":[' : '{"embedding":'),
    piece: (embedding) => `{"values":${embedding}}`,
    tail: (tokens) => `${isBatch ? "]" : ""},"usageMetadata":{"promptTokenCount":${tokens}}}`,
  };
}

function callOf({ payload, request }: CallContext): EmbeddingsCall {
  if (payload.format === "gemini") return geminiCall(request, payload.endpoint.endsWith(":batchEmbedContents"));
  return {
    request,
    ignored: [],
    head: (model) => `{"object":"list","model":${JSON.stringify(model)},"data":[`,
    piece: (embedding, index) => `{"object":"embedding","index":${index},"embedding":${embedding}}`,
    tail: (tokens) => `],"usage":{"prompt_tokens":${tokens},"total_tokens":${tokens}}}`,
  };
}

/** Most models have fewer. */
const usualDimensions = 3_072;
/** The length of a number, with its comma or its part of base64. */
const numberBytes = { float: 21, base64: 6 } as const;

function expectedBytes({ input, dimensions, encoding_format: encoding }: JsonObject): number {
  const numbers = (isList(input) ? input.length : 1) * (typeof dimensions === "number" ? dimensions : usualDimensions);
  // An answer with more is refused.
  return Math.min(numbers, vectorValues) * numberBytes[encoding === "base64" ? "base64" : "float"];
}

/** A text of this length is a frame of the reply by itself. Joining all of them would hold other calls up. */
const partUnits = 64 * 1024;
/** Other calls get their turn after each of these. */
const unitsAtOnce = 256 * 1024;

const embed = jsonCall("embed", (call) => {
  const { payload, account } = call;
  const { request, ignored, head, piece, tail } = callOf(call);
  return {
    body: withTenantIds(request, account),
    ignored,
    answerBytes: expectedBytes(request),
    async answer(response, model) {
      const { embeddings, usage } = embeddingsOf(response, request);
      const parts: string[] = [];
      let part = head(model.id);
      let [units, allUnits] = [0, 0];
      for (const [index, embedding] of embeddings.entries()) {
        const text = piece(embeddingText(embedding, request["encoding_format"]), index);
        if (part.length + text.length > partUnits) {
          parts.push(part);
          part = "";
        }
        part += index === 0 ? text : `,${text}`;
        units += text.length;
        if (units < unitsAtOnce) continue;
        allUnits += units;
        units = 0;
        await nextTurnIfLarge(allUnits);
      }
      const reported = tokenUsage(usage);
      const input = reported ? promptTokens(reported) : payload.inputEstimate;
      return {
        text: [...parts, part + tail(input)],
        usage: { input },
        estimated: reported === undefined,
      };
    },
  };
});

/** An embeddings call on an upstream that speaks the embeddings format. */
export const embeddings = (call: CallContext): Promise<Answer> =>
  embed(call).catch((error: unknown) => {
    throw call.payload.format === "gemini" ? withCallerFields(error, geminiFields) : error;
  });
