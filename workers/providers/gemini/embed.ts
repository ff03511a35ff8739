import { type JsonObject, refusal, type UpstreamCall, UpstreamFailure } from "../provider.ts";
import { isObject } from "../wire/json.ts";
import type { ProviderClient } from "../wire/provider-client.ts";
import { methodPath, modelPath } from "./read-answer.ts";

/** Limit of the provider. */
const batchSize = 100;

/** The call and its answer have the shape of OpenAI's embeddings. */
export async function embed(client: ProviderClient, call: UpstreamCall): Promise<JsonObject> {
  const { input, dimensions } = call.body;
  const texts = Array.isArray(input) ? input : [input];
  if (!texts.every((text) => typeof text === "string"))
    throw refusal("input: this model takes text, not tokens.", "input");
  const vectors: (readonly number[])[] = [];
  let tokens: number | undefined = 0;
  for (let from = 0; from < texts.length; from += batchSize) {
    const batch = await embedBatch(client, call, texts.slice(from, from + batchSize), dimensions ?? undefined);
    vectors.push(...batch.vectors);
    tokens = batch.tokens === undefined || tokens === undefined ? undefined : tokens + batch.tokens;
  }
  return {
    data: vectors.map((values, index) => ({ index, embedding: dimensions == null ? values : normalized(values) })),
    ...(tokens !== undefined && { usage: { prompt_tokens: tokens, total_tokens: tokens } }),
  };
}

async function embedBatch(client: ProviderClient, call: UpstreamCall, texts: readonly string[], dimensions: unknown) {
  const requests = texts.map((text) => ({
    model: modelPath(call.model),
    content: { parts: [{ text }] },
    outputDimensionality: dimensions,
  }));
  const path = methodPath(call.model, "batchEmbedContents");
  const { embeddings, usageMetadata } = await client.sendForJson({ path, json: { requests } }, call);
  const vectors = Array.isArray(embeddings) ? embeddings.map(vectorOf) : [];
  if (vectors.length !== texts.length)
    throw new UpstreamFailure("unavailable", "an answer without an embedding for each text");
  const { promptTokenCount } = isObject(usageMetadata) ? usageMetadata : {};
  const isReported = Number.isSafeInteger(promptTokenCount) && (promptTokenCount as number) > 0;
  return { vectors, tokens: isReported ? (promptTokenCount as number) : undefined };
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
