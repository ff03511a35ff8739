import { type Generated, type GenerationCall, type JsonObject, UpstreamFailure } from "../provider.ts";
import { parse, whole } from "../wire/answers.ts";
import type { ProviderClient } from "../wire/provider-client.ts";
import { answerLimitBytes, holdingOf } from "./answer.ts";
import { imageConfigOf } from "./image-config.ts";
import { inlineMedia } from "./inline-media.ts";
import { base64Of, picturesIn, refuseOthers, textOf } from "./inputs.ts";
import { methodOf } from "./method.ts";

const mostPictures = 14;
/** Of a request as a whole the provider takes 100 MB, in base64. */
const picturesLimitBytes = 64 * 1024 * 1024;

/** The provider makes one picture a call; those that fail, while others do not, are fewer to pay for. */
export async function images(provider: ProviderClient, call: GenerationCall): Promise<Generated> {
  const json = await requestOf(call);
  const asked = typeof call.input.n === "number" ? call.input.n : 1;
  const outcomes = await Promise.allSettled(Array.from({ length: asked }, () => makeOne(provider, call, json)));
  call.signal.throwIfAborted();
  const failures = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason as unknown] : []));
  const count = asked - failures.length;
  // What is not the provider's is ours, whatever else went well.
  const ours = failures.find((failure) => !(failure instanceof UpstreamFailure));
  if (ours !== undefined || count === 0) throw ours ?? failures[0];
  for (const failure of failures) call.log.warn({ kind: (failure as UpstreamFailure).kind }, "an image is lost");
  return { output: {}, usage: { image: count } };
}

async function requestOf(call: GenerationCall): Promise<JsonObject> {
  const prompt = textOf(call.input, "prompt");
  const imageConfig = imageConfigOf(call.input);
  const pictures = picturesIn(call, "image", mostPictures);
  refuseOthers(call, pictures);
  const contents = await base64Of(pictures, picturesLimitBytes);
  const seen = pictures.map(({ mime: mimeType }, at) => ({ inlineData: { mimeType, data: contents[at] } }));
  return {
    contents: [{ role: "user", parts: [...seen, { text: prompt }] }],
    // Words beside the picture would cost, and nobody would see them.
    generationConfig: { responseModalities: ["IMAGE"], imageConfig, thinkingConfig: thinkingOf(call.input) },
    store: false,
  };
}

/** Models that think are paid for their thoughts too. */
const thinkingOf = ({ thinking_level: level }: JsonObject): JsonObject | undefined =>
  typeof level === "string" ? { thinkingLevel: level.toUpperCase() } : undefined;

async function makeOne(provider: ProviderClient, call: GenerationCall, json: JsonObject): Promise<void> {
  const answer = await provider.send({ path: methodOf(call.model, "generateContent"), json }, call);
  const text = await whole(answer, answerLimitBytes, call.signal, holdingOf(call));
  const { bytes } = inlineMedia(parse(text), "image", provider.clock);
  await call.keep(bytes);
}
