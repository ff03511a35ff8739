/**
 * Google's Gemini API (https://ai.google.dev/api): generateContent and its stream, countTokens, embeddings by
 * batchEmbedContents, images by generateContent, videos by the Interactions API, which is the only way to them since the
 * provider ended Imagen and Veo here; speech by generateContent. The key goes in a header, to the operator's address alone.
 *
 * What callers may give (`?`: need not), and what becomes of it. Other fields are not sent.
 *
 *   images   prompt; image? (upload, or up to 14) -> inlineData; n? -> as many calls; aspect_ratio? and resolution? (512, 1K,
 *            2K, 4K) -> imageConfig; size? (1536x1024) -> the ratio it has, and the resolution nearest to its area;
 *            thinking_level? (minimal, medium, high)
 *   video    prompt; duration (seconds); resolution? (360p, 720p, 1080p, 4k); aspect_ratio? (16:9, 9:16); seed?;
 *            image? (upload: the first frame) or reference_images? (up to 6 uploads)
 *   speech   text; voice? (one of the provider's names); a WAV file comes of it
 *
 * Usage: {image}, {second}, {character}, as delivered and never more than was asked for. What comes back is hostile until
 * it is parsed: an answer has at most 64 MB, an event of a stream 8 MB. Other errors than the request's own never show the
 * caller what the provider said.
 */

import type { Clock } from "#platform/clock";
import { type JsonObject, type Provider, type Target, type TextCall, UpstreamFailure } from "../provider.ts";
import { parse, whole } from "../wire/answers.ts";
import { connectProvider, versioned } from "../wire/provider-client.ts";
import { readStream } from "../wire/stream.ts";
import { answerLimitBytes, checkAnswer, streamRules } from "./answer.ts";
import { embed } from "./embed.ts";
import { createGeneration } from "./generate.ts";
import { methodOf } from "./method.ts";

const countLimitBytes = 64 * 1024;

export function createGemini({ baseUrl, concurrency, apiKey }: Target, { clock }: { clock: Clock }): Provider {
  const headers = apiKey === undefined ? {} : { "x-goog-api-key": apiKey };
  const provider = connectProvider({ baseUrl: versioned(baseUrl, "v1beta"), concurrency, headers }, clock);
  const generation = createGeneration(provider);

  return {
    speaks: ["gemini"],
    async answer(call) {
      const path = methodOf(call.model, "generateContent");
      const answer = await provider.send({ path, json: bodyOf(call) }, call);
      return checkAnswer(parse(await whole(answer, answerLimitBytes, call.signal)), clock);
    },
    async *stream(call) {
      const path = `${methodOf(call.model, "streamGenerateContent")}?alt=sse`;
      const answer = await provider.send({ path, json: bodyOf(call), accept: "text/event-stream" }, call);
      yield* readStream(answer, streamRules, call.signal, clock);
    },
    async count(call) {
      const generateContentRequest = { ...bodyOf(call), model: `models/${call.model.replace(/^models\//, "")}` };
      const path = methodOf(call.model, "countTokens");
      const answer = await provider.send({ path, json: { generateContentRequest } }, call);
      const { totalTokens } = parse(await whole(answer, countLimitBytes, call.signal));
      if (Number.isSafeInteger(totalTokens) && (totalTokens as number) >= 0) return totalTokens as number;
      throw new UpstreamFailure("unavailable", "an answer without a count of tokens");
    },
    embed: (call) => embed(provider, call),
    generate: (call) => generation.generate(call),
    takesLinks: true,
    close: async () => {
      await Promise.all([provider.close(), generation.close()]);
    },
  };
}

function bodyOf({ format, body }: TextCall): JsonObject {
  if (format !== "gemini") throw new UpstreamFailure("misconfigured", `this kind of upstream does not speak ${format}`);
  return body;
}
