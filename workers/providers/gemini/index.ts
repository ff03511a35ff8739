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
import { isCount, type JsonObject } from "#json";
import type { Clock } from "#platform/clock";
import { connectProvider, type ProviderClient, versioned } from "../http/provider-client.ts";
import { readStream } from "../http/read-stream.ts";
import { type Provider, runTask, type TextCall, type UpstreamEndpoint, UpstreamFailure } from "../provider.ts";
import { batchEmbedContents, type EmbeddingMethod, embed } from "./embeddings.ts";
import { images, speech } from "./media.ts";
import { checkAnswer, methodPath, modelPath, streamRules } from "./read-answer.ts";
import { video } from "./video.ts";

const countLimitBytes = 64 * 1024;

export function createGemini(
  { baseUrl, concurrency, apiKey }: UpstreamEndpoint,
  { clock }: { clock: Clock },
): Provider {
  const headers = apiKey === undefined ? {} : { "x-goog-api-key": apiKey };
  return geminiThrough(connectProvider({ baseUrl: versioned(baseUrl, "v1beta"), concurrency, headers }, clock));
}

/** The provider behind this client, which may be a cloud that serves the same requests at addresses of its own. */
export function geminiThrough(client: ProviderClient, embeddings: EmbeddingMethod = batchEmbedContents): Provider {
  const { clock } = client;

  return {
    speaks: ["gemini"],
    async answer(call) {
      const path = methodPath(call.model, "generateContent");
      return checkAnswer(await client.sendForJson({ path, json: bodyOf(call) }, call), clock);
    },
    stream(call) {
      const path = `${methodPath(call.model, "streamGenerateContent")}?alt=sse`;
      return readStream(client, { path, json: bodyOf(call) }, streamRules, call);
    },
    async count(call) {
      const generateContentRequest = { ...bodyOf(call), model: modelPath(call.model) };
      const path = methodPath(call.model, "countTokens");
      const request = { path, json: { generateContentRequest } };
      const { totalTokens } = await client.sendForJson(request, call, { limitBytes: countLimitBytes });
      if (isCount(totalTokens)) return totalTokens;
      throw new UpstreamFailure("unavailable", "an answer without a count of tokens");
    },
    check: (call) => client.probe("/models?pageSize=1", call),
    embed: (call) => embed(client, call, embeddings),
    generate: (call) => runTask({ images, video, speech }, client, call),
    takesLinks: true,
    close: () => client.close(),
  };
}

function bodyOf({ format, body }: TextCall): JsonObject {
  if (format !== "gemini") throw new UpstreamFailure("misconfigured", `this kind of upstream does not speak ${format}`);
  return body;
}
