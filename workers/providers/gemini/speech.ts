import { type Generated, type GenerationCall, UpstreamFailure } from "../provider.ts";
import { wavHeader } from "../recording.ts";
import { parse, whole } from "../wire/answers.ts";
import type { ProviderClient } from "../wire/provider-client.ts";
import { answerLimitBytes, holdingOf } from "./answer.ts";
import { type InlineMedia, inlineMedia } from "./inline-media.ts";
import { refused, refuseOthers, textOf } from "./inputs.ts";
import { methodOf } from "./method.ts";

/** The provider gives bare samples; with a header they are a file. */
export async function speech(provider: ProviderClient, call: GenerationCall): Promise<Generated> {
  const text = textOf(call.input, "text");
  const { voice, format } = call.input;
  if (format != null && format !== "wav") throw refused("format", "this model makes wav alone.");
  refuseOthers(call, []);
  const speechConfig = voice == null ? undefined : { voiceConfig: { prebuiltVoiceConfig: { voiceName: voice } } };
  const json = {
    contents: [{ role: "user", parts: [{ text }] }],
    generationConfig: { responseModalities: ["AUDIO"], speechConfig },
    store: false,
  };
  const answer = await provider.send({ path: methodOf(call.model, "generateContent"), json }, call);
  const sound = await whole(answer, answerLimitBytes, call.signal, holdingOf(call));
  const media = inlineMedia(parse(sound), "audio", provider.clock);
  await call.keep(wavOf(media));
  return { output: {}, usage: { character: Array.from(text).length } };
}

/** `audio/L16;codec=pcm;rate=24000`: 16 bits, little-endian for all that the name says, one channel. */
function wavOf({ mime, bytes }: InlineMedia): Buffer {
  if (/^audio\/(x-)?wav\b/i.test(mime)) return bytes;
  const rate = Number(/;\s*rate=(\d{4,6})\b/i.exec(mime)?.[1]);
  if (!/^audio\/(l16|pcm)\b/i.test(mime) || !(rate > 0))
    throw new UpstreamFailure("unavailable", `sound as ${mime.slice(0, 100)}`);
  return Buffer.concat([wavHeader(Math.floor(bytes.length / 2), rate), bytes]);
}
