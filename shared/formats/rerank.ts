import { z } from "zod";
import { invalidValue } from "#errors";
import { isSet, type JsonObject, refuseDeep } from "#json";
import { chatCodec } from "./chat/codec.ts";
import { refuse, validate } from "./errors.ts";
import { textCall } from "./measure.ts";
import { modelOrModels, routingFields } from "./routing-fields.ts";
import type { Codec } from "./types.ts";

const maxDocuments = 1_000;
const whole = z.int().positive().max(1e9);
const document = z.union([z.string(), z.looseObject({})]);

/** Cohere's request (v1 and v2) and Jina's. docs/api/inference.md, "RerankRequest". */
export const rerankRequest = z
  .looseObject({
    model: z.string().min(1),
    query: z.string().min(1, "must not be empty"),
    documents: z
      .array(document)
      .min(1)
      .max(maxDocuments)
      .describe("Texts, objects with a text, or objects with one of the rank_fields"),
    top_n: whole.nullish().describe("Number of results; default: all"),
    return_documents: z.boolean().nullish().describe("Results include their document; default: false"),
    rank_fields: z.array(z.string().min(1)).min(1).max(100).nullish().describe("Fields of the objects to rank by"),
    max_tokens_per_doc: whole.nullish().describe("Longer documents are truncated, by models that support it"),
    ...routingFields,
  })
  .meta({ id: "RerankRequest", override: modelOrModels });

type RerankRequest = z.infer<typeof rerankRequest>;

/** Documents are checked one by one, because the schema would copy all of their fields. */
const checkedRequest = rerankRequest.extend({ documents: z.array(z.unknown()).min(1).max(maxDocuments) });
const isDocument = (value: unknown): value is string | JsonObject =>
  typeof value === "string" || (typeof value === "object" && value !== null && !Array.isArray(value));

const known: ReadonlySet<string> = new Set(Object.keys(rerankRequest.shape));

const imageFields = ["image", "image_url"];
const isScalar = (value: unknown) => ["string", "number", "boolean"].includes(typeof value);

function textOf(document: string | JsonObject, at: string, fields: RerankRequest["rank_fields"]): string {
  if (typeof document === "string") return document;
  const named = new Set(fields ?? ["text"]);
  const image = (fields ?? imageFields).find((field) => imageFields.includes(field) && isSet(document[field]));
  if (image) throw invalidValue(`${at}.${image}`, `${at}.${image}: images cannot be ranked; send texts.`);
  const values = [...named].flatMap((field) => (isScalar(document[field]) ? [String(document[field])] : []));
  const text = values.join("\n");
  if (values.length === 0)
    refuse(fields ? at : `${at}.text`, fields ? "has none of the rank_fields" : "must be a text");
  return text;
}

export function rerankOf(body: unknown) {
  refuseDeep(body);
  const request = validate(checkedRequest, body);
  const documents = request.documents.map((each, index) =>
    isDocument(each) ? each : refuse(`documents[${index}]`, "Invalid input: expected string or object"),
  );
  const { model, query, top_n, return_documents, rank_fields, max_tokens_per_doc } = request;
  return {
    model,
    query,
    texts: documents.map((each, index) => textOf(each, `documents[${index}]`, rank_fields)),
    /** Unchanged, as the caller sent them. */
    documents,
    topN: Math.min(top_n ?? documents.length, documents.length),
    returnsDocuments: return_documents ?? false,
    maxTokensPerDoc: max_tokens_per_doc ?? undefined,
    /** Fields without a meaning here, by name. */
    others: Object.entries<unknown>(request).filter(([name]) => !known.has(name)),
  };
}

/** Documents of one of Cohere's units (https://docs.cohere.com/docs/how-does-cohere-pricing-work). */
const searchDocuments = 100;
/** A document that has, together with the query, more tokens than this counts as several. */
const chunkTokens = 500;

/**
 * Computes the size of a call, in which every chunk of a document is read together with the query. `tokensOf` is exact,
 * an estimate or, for the bound of a cost, the number of bytes.
 */
export function rerankSize(
  { query, texts, maxTokensPerDoc }: Pick<ReturnType<typeof rerankOf>, "query" | "texts" | "maxTokensPerDoc">,
  tokensOf: (text: string) => number,
) {
  const queryTokens = tokensOf(query);
  let chunks = 0;
  let documentTokens = 0;
  for (const text of texts) {
    const tokens = Math.min(tokensOf(text), maxTokensPerDoc ?? Number.POSITIVE_INFINITY);
    documentTokens += tokens;
    chunks += Math.max(1, Math.ceil((tokens + queryTokens) / chunkTokens));
  }
  return { tokens: documentTokens + chunks * queryTokens, searches: Math.ceil(chunks / searchDocuments) };
}

export const rerankCodec: Codec = {
  ...chatCodec,
  parse(body) {
    const call = rerankOf(body);
    const { tokens: inputBytes, searches } = rerankSize(call, (text) => Buffer.byteLength(text));
    return textCall(call.model, inputBytes, { inputBytes, messages: call.texts.length, searches });
  },
};
