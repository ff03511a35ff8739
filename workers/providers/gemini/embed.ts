import { type JsonObject, type UpstreamCall, UpstreamFailure } from "../provider.ts";
import { isObject, parse, whole } from "../wire/answers.ts";
import type { ProviderClient } from "../wire/provider-client.ts";
import { answerLimitBytes } from "./answer.ts";
import { methodOf } from "./method.ts";

/** As many texts as the provider takes at a time. */
const batchSize = 100;

/** A call in OpenAI's shape, its answer too. */
export async function embed(provider: ProviderClient, call: UpstreamCall): Promise<JsonObject> {
  const { input, dimensions } = call.body;
  const texts = Array.isArray(input) ? input : [input];
  if (!texts.every((text) => typeof text === "string"))
    throw new UpstreamFailure("refused", "input: this model takes text alone.", { param: "input" });
  const vectors: (readonly number[])[] = [];
  let tokens: number | undefined = 0;
  for (let from = 0; from < texts.length; from += batchSize) {
    const batch = await embedBatch(provider, call, texts.slice(from, from + batchSize), dimensions ?? undefined);
    vectors.push(...batch.vectors);
    tokens = batch.tokens === undefined || tokens === undefined ? undefined : tokens + batch.tokens;
  }
  return {
    data: vectors.map((values, index) => ({ index, embedding: dimensions == null ? values : ofLengthOne(values) })),
    ...(tokens !== undefined && { usage: { prompt_tokens: tokens, total_tokens: tokens } }),
  };
}

async function embedBatch(provider: ProviderClient, call: UpstreamCall, texts: readonly string[], dimensions: unknown) {
  const requests = texts.map((text) => ({
    model: `models/${call.model.replace(/^models\//, "")}`,
    content: { parts: [{ text }] },
    // JSON leaves out what is undefined.
    outputDimensionality: dimensions,
  }));
  const answer = await provider.send({ path: methodOf(call.model, "batchEmbedContents"), json: { requests } }, call);
  const { embeddings, usageMetadata } = parse(await whole(answer, answerLimitBytes, call.signal));
  const vectors = Array.isArray(embeddings) ? embeddings.map(vectorOf) : [];
  if (vectors.length !== texts.length)
    throw new UpstreamFailure("unavailable", "an answer without an embedding for each text");
  const { promptTokenCount } = isObject(usageMetadata) ? usageMetadata : {};
  const isTold = Number.isSafeInteger(promptTokenCount) && (promptTokenCount as number) > 0;
  return { vectors, tokens: isTold ? (promptTokenCount as number) : undefined };
}

function vectorOf(embedding: unknown): readonly number[] {
  const { values } = isObject(embedding) ? embedding : {};
  if (Array.isArray(values) && values.length > 0 && values.every(Number.isFinite)) return values as number[];
  throw new UpstreamFailure("unavailable", "an embedding that is no list of numbers");
}

/** The provider cuts a vector short without making it a unit again; callers of OpenAI's interface count on that. */
function ofLengthOne(values: readonly number[]): readonly number[] {
  const length = Math.hypot(...values);
  return length > 0 && Math.abs(length - 1) > 1e-3 ? values.map((value) => value / length) : values;
}
