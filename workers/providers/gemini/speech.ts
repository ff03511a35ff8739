import { type Generated, type GenerationCall, UpstreamFailure } from "../provider.ts";
import { wavHeader } from "../recording.ts";
import type { ProviderClient } from "../wire/provider-client.ts";
import { refused, refuseOtherUploads, textIn } from "./inputs.ts";
import { generateInline, type InlineMedia } from "./read-answer.ts";

/** The provider answers with samples; with a header they are a WAV file. */
export async function speech(client: ProviderClient, call: GenerationCall): Promise<Generated> {
  const text = textIn(call.input, "text");
  const { voice, format } = call.input;
  if (format != null && format !== "wav") throw refused("format", "this model makes only wav.");
  refuseOtherUploads(call, []);
  const speechConfig = voice == null ? undefined : { voiceConfig: { prebuiltVoiceConfig: { voiceName: voice } } };
  const json = {
    contents: [{ role: "user", parts: [{ text }] }],
    generationConfig: { responseModalities: ["AUDIO"], speechConfig },
    store: false,
  };
  await call.store(wavOf(await generateInline(client, call, json, "audio")));
  return { output: {}, usage: { character: Array.from(text).length } };
}

/** `audio/L16;codec=pcm;rate=24000`: 16 bits, one channel, and little-endian, although L16 is big-endian by its definition. */
function wavOf({ mime, bytes }: InlineMedia): Buffer {
  if (/^audio\/(x-)?wav\b/i.test(mime)) return bytes;
  const rate = Number(/;\s*rate=(\d{4,6})\b/i.exec(mime)?.[1]);
  if (!/^audio\/(l16|pcm)\b/i.test(mime) || !(rate > 0))
    throw new UpstreamFailure("unavailable", `audio of type ${mime.slice(0, 100)}`);
  return Buffer.concat([wavHeader(Math.floor(bytes.length / 2), rate), bytes]);
}
