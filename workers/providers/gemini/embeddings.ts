import { isCount, isObject, type JsonObject } from "#json";
import type { ProviderClient } from "../http/provider-client.ts";
import { vectorValues } from "../http/untrusted-json.ts";
import { refusal, type UpstreamCall, UpstreamFailure } from "../provider.ts";
import { methodPath, modelPath } from "./read-answer.ts";

/** A method of the provider that embeds texts. */
export interface EmbeddingMethod {
  /** The most texts that a request may have. */
  readonly batchSize: number;
  /** The number of requests of one call that run at the same time. */
  readonly parallel: number;
  readonly name: string;
  readonly request: (texts: readonly string[], dimensions: unknown, model: string) => JsonObject;
  /** The embeddings, which are not checked yet, and the tokens of the texts, if the provider counts them. */
  readonly read: (answer: JsonObject) => { readonly embeddings: unknown; readonly tokens: unknown };
}

export const batchEmbedContents: EmbeddingMethod = {
  batchSize: 100,
  parallel: 1,
  name: "batchEmbedContents",
  request: (texts, outputDimensionality, model) => ({
    requests: texts.map((text) => ({ model: modelPath(model), content: { parts: [{ text }] }, outputDimensionality })),
  }),
  read({ embeddings, usageMetadata }) {
    const { promptTokenCount } = isObject(usageMetadata) ? usageMetadata : {};
    return { embeddings, tokens: promptTokenCount };
  },
};

interface Batch {
  readonly vectors: readonly (readonly number[])[];
  readonly tokens: number | undefined;
}

/** The call and its answer have the shape of OpenAI's embeddings. */
export async function embed(client: ProviderClient, call: UpstreamCall, method: EmbeddingMethod): Promise<JsonObject> {
  const { input, dimensions } = call.body;
  const texts = Array.isArray(input) ? input : [input];
  if (!texts.every((text) => typeof text === "string"))
    throw refusal("input: this model takes text, not tokens.", "input");
  const batches: Batch[] = [];
  const { batchSize, parallel } = method;
  for (let from = 0; from < texts.length; from += batchSize * parallel) {
    const starts = Array.from({ length: parallel }, (_, at) => from + at * batchSize).filter((at) => at < texts.length);
    const embedFrom = (at: number) =>
      embedBatch(client, call, texts.slice(at, at + batchSize), dimensions ?? undefined, method);
    // After a failure, the other requests still run.
    for (const outcome of await Promise.allSettled(starts.map(embedFrom))) {
      if (outcome.status === "rejected") throw outcome.reason;
      batches.push(outcome.value);
    }
  }
  const vectors = batches.flatMap((batch) => batch.vectors);
  const tokens = batches.reduce<number | undefined>(
    (sum, batch) => (batch.tokens === undefined || sum === undefined ? undefined : sum + batch.tokens),
    0,
  );
  return {
    data: vectors.map((values, index) => ({ index, embedding: dimensions == null ? values : normalized(values) })),
    ...(tokens !== undefined && { usage: { prompt_tokens: tokens, total_tokens: tokens } }),
  };
}

async function embedBatch(
  client: ProviderClient,
  call: UpstreamCall,
  texts: readonly string[],
  dimensions: unknown,
  { name, request, read }: EmbeddingMethod,
): Promise<Batch> {
  const json = request(texts, dimensions, call.model);
  const answer = await client.sendForJson({ path: methodPath(call.model, name), json }, call, {
    maxValues: vectorValues,
  });
  const { embeddings, tokens } = read(answer);
  const vectors = Array.isArray(embeddings) ? embeddings.map(vectorOf) : [];
  if (vectors.length !== texts.length)
    throw new UpstreamFailure("unavailable", "an answer without an embedding for each text");
  return { vectors, tokens: isCount(tokens) && tokens > 0 ? tokens : undefined };
}

function vectorOf(embedding: unknown): readonly number[] {
  const { values } = isObject(embedding) ? embedding : {};
  if (Array.isArray(values) && values.length > 0 && values.every(Number.isFinite)) return values as number[];
  throw new UpstreamFailure("unavailable", "an embedding that is not a list of numbers");
}

/** The provider does not normalize a vector again after truncating it; callers of OpenAI's interface expect length 1. */
function normalized(values: readonly number[]): readonly number[] {
  const length = Math.hypot(...values);
  return length > 0 && Math.abs(length - 1) > 1e-3 ? values.map((value) => value / length) : values;
}
