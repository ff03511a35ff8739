/**
 * Google's Gemini API (https://ai.google.dev/api): generateContent and its stream, countTokens, embeddings by
 * batchEmbedContents, images and speech by generateContent, videos by the Interactions API, which alone still offers them.
 * The key goes in a header, and only to the operator's address.
 *
 * Fields that callers may set (`?` means optional), and what they are converted to. Other fields are not sent.
 *
 *   images   prompt; image? (upload, or up to 14) -> inlineData; n? -> as many calls; aspect_ratio? and resolution? (512, 1K,
 *            2K, 4K) -> imageConfig; size? (1536x1024) -> the ratio it has, and the resolution nearest to its area;
 *            thinking_level? (minimal, medium, high)
 *   video    prompt; duration (seconds); resolution? (360p, 720p, 1080p, 4k); aspect_ratio? (16:9, 9:16); seed?;
 *            image? (upload: the first frame) or reference_images? (up to 6 uploads)
 *   speech   text; voice? (one of the provider's names); the result is a WAV file
 *
 * Usage: {image}, {second}, {character}, as delivered and never more than requested. Answers are untrusted: an answer has at
 * most 64 MB, an event of a stream 8 MB. Callers see the provider's message only if their request is at fault.
 */
import { isCount, isObject, type JsonObject } from "#json";
import type { Clock } from "#platform/clock";
import { connectProvider, type ProviderClient, versioned } from "../http/provider-client.ts";
import { readStream } from "../http/read-stream.ts";
import { vectorValues } from "../http/untrusted-json.ts";
import {
  type Provider,
  refusal,
  runTask,
  type TextCall,
  type UpstreamCall,
  type UpstreamEndpoint,
  UpstreamFailure,
} from "../provider.ts";
import { images, speech } from "./media.ts";
import { checkAnswer, methodPath, modelPath, streamRules } from "./read-answer.ts";
import { video } from "./video.ts";

const countLimitBytes = 64 * 1024;

export function createGemini(
  { baseUrl, concurrency, apiKey }: UpstreamEndpoint,
  { clock }: { clock: Clock },
): Provider {
  const headers = apiKey === undefined ? {} : { "x-goog-api-key": apiKey };
  const client = connectProvider({ baseUrl: versioned(baseUrl, "v1beta"), concurrency, headers }, clock);

  return {
    speaks: ["gemini"],
    async answer(call) {
      const path = methodPath(call.model, "generateContent");
      return checkAnswer(await client.sendForJson({ path, json: bodyOf(call) }, call), clock);
    },
    async *stream(call) {
      const path = `${methodPath(call.model, "streamGenerateContent")}?alt=sse`;
      yield* readStream(client, { path, json: bodyOf(call) }, streamRules, call);
    },
    async count(call) {
      const generateContentRequest = { ...bodyOf(call), model: modelPath(call.model) };
      const path = methodPath(call.model, "countTokens");
      const request = { path, json: { generateContentRequest } };
      const { totalTokens } = await client.sendForJson(request, call, { limitBytes: countLimitBytes });
      if (isCount(totalTokens)) return totalTokens;
      throw new UpstreamFailure("unavailable", "an answer without a count of tokens");
    },
    embed: (call) => embed(client, call),
    generate: (call) => runTask({ images, video, speech }, client, call),
    takesLinks: true,
    close: () => client.close(),
  };
}

function bodyOf({ format, body }: TextCall): JsonObject {
  if (format !== "gemini") throw new UpstreamFailure("misconfigured", `this kind of upstream does not speak ${format}`);
  return body;
}

/** The provider's limit. */
const batchSize = 100;

/** The call and its answer have the shape of OpenAI's embeddings. */
async function embed(client: ProviderClient, call: UpstreamCall): Promise<JsonObject> {
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
  const { embeddings, usageMetadata } = await client.sendForJson({ path, json: { requests } }, call, {
    maxValues: vectorValues,
  });
  const vectors = Array.isArray(embeddings) ? embeddings.map(vectorOf) : [];
  if (vectors.length !== texts.length)
    throw new UpstreamFailure("unavailable", "an answer without an embedding for each text");
  const { promptTokenCount } = isObject(usageMetadata) ? usageMetadata : {};
  return { vectors, tokens: isCount(promptTokenCount) && promptTokenCount > 0 ? promptTokenCount : undefined };
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
