import { type Generated, type GenerationCall, UpstreamFailure } from "../provider.ts";
import { parse, whole } from "../wire/answers.ts";
import type { Maker } from "../wire/maker.ts";
import { answerLimitBytes } from "./answer.ts";
import { type InlineMedia, inlineMedia } from "./inline-media.ts";
import { refused, refuseOthers, textOf } from "./inputs.ts";
import { methodOf } from "./method.ts";

/** The maker gives bare samples; with a header they are a file. */
export async function speech(maker: Maker, call: GenerationCall): Promise<Generated> {
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
  const answer = await maker.send({ path: methodOf(call.model, "generateContent"), json }, call);
  const media = inlineMedia(parse(await whole(answer, answerLimitBytes, call.signal)), "audio", maker.clock);
  await call.keep(wavOf(media));
  return { output: {}, usage: { character: Array.from(text).length } };
}

/** `audio/L16;codec=pcm;rate=24000`: 16 bits, little-endian for all that the name says, one channel. */
function wavOf({ mime, bytes }: InlineMedia): Buffer {
  if (/^audio\/(x-)?wav\b/i.test(mime)) return bytes;
  const rate = Number(/;\s*rate=(\d{4,6})\b/i.exec(mime)?.[1]);
  if (!/^audio\/(l16|pcm)\b/i.test(mime) || !(rate > 0))
    throw new UpstreamFailure("unavailable", `sound as ${mime.slice(0, 100)}`);
  return Buffer.concat([headerOf(bytes.length, rate), bytes]);
}

/** http://soundfile.sapp.org/doc/WaveFormat/ */
function headerOf(bytes: number, rate: number): Buffer {
  const header = Buffer.alloc(44);
  header.write("RIFF", 0, "latin1");
  header.writeUInt32LE(36 + bytes, 4);
  header.write("WAVEfmt ", 8, "latin1");
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(rate, 24);
  header.writeUInt32LE(rate * 2, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write("data", 36, "latin1");
  header.writeUInt32LE(bytes, 40);
  return header;
}
