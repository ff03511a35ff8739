import { setImmediate } from "node:timers/promises";
import { z } from "zod";
import { type Clock, sleep } from "#platform/clock";
import { type Generated, type GenerationCall, refusal } from "../provider.ts";
import { wavHeader } from "../wav-header.ts";
import { hashOf, uploadOf } from "./inputs.ts";
import { parseRequest, triggerOf } from "./request.ts";

const maxCharacters = 4096;
const charactersPerSecond = 15;
const minSeconds = 0.3;
const sampleRate = 24_000;
/** A part takes a millisecond or two; the event loop gets a turn after each part. */
const partSamples = sampleRate / 4;

const speechInput = z.object({
  text: z
    .string()
    .min(1)
    .refine((text) => Array.from(text).length <= maxCharacters, `must have at most ${maxCharacters} characters`),
  voice: z.string().min(1).max(64).nullish(),
  format: z.enum(["wav", "mp3", "pcm"]).nullish(),
  speed: z.number().min(0.25).max(4).nullish(),
});

export async function makeSpeech(clock: Clock, call: GenerationCall): Promise<Generated> {
  const { text, voice, format, speed } = parseRequest(speechInput, call.input);
  const { delayMs } = triggerOf(text, "text");
  if (delayMs) await sleep(clock, delayMs, call.signal);
  const characters = Array.from(text);
  const seconds = Math.max(minSeconds, characters.length / charactersPerSecond / (speed ?? 1));
  const perCharacter = Math.round((seconds * sampleRate) / characters.length);
  const samples = perCharacter * characters.length;
  const tones = () => tonesOf(characters, perCharacter, voice ?? "alto", call.signal);
  if (format === "mp3") await call.store(silentMp3(samples));
  else await call.store(format === "pcm" ? tones() : withHeader(samples, tones()));
  const duration = samples / sampleRate;
  return { output: { format: format ?? "wav", duration }, usage: { character: characters.length } };
}

/** MPEG-2 layer III: 24 kHz, one channel, 32 kbit/s. */
const mp3Head = Buffer.from("fff344c0", "hex");
const mp3FrameBytes = 96;
const mp3FrameSamples = 576;

/** Frames whose side information is all zero are silence. */
function silentMp3(samples: number): Buffer {
  const file = Buffer.alloc(Math.ceil(samples / mp3FrameSamples) * mp3FrameBytes);
  for (let at = 0; at < file.length; at += mp3FrameBytes) mp3Head.copy(file, at);
  return file;
}

async function* withHeader(samples: number, tones: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield wavHeader(samples, sampleRate);
  yield* tones;
}

async function* tonesOf(characters: readonly string[], perCharacter: number, voice: string, signal: AbortSignal) {
  const pitch = 300 + (hashOf(voice).readUInt32BE() % 300);
  const perPart = Math.ceil(partSamples / perCharacter);
  for (let at = 0; at < characters.length; at += perPart) {
    yield Buffer.concat(characters.slice(at, at + perPart).map((each) => toneOf(each, perCharacter, pitch)));
    await setImmediate();
    signal.throwIfAborted();
  }
}

/** 16-bit samples of a tone within two octaves above the voice's pitch, faded in and out, and of silence between words. */
function toneOf(character: string, samples: number, pitch: number): Buffer {
  const tone = Buffer.alloc(samples * 2);
  if (!/[\p{L}\p{N}]/u.test(character)) return tone;
  const hertz = pitch * 2 ** (((character.codePointAt(0) ?? 0) % 24) / 12);
  for (let at = 0; at < samples; at++) {
    const loudness = 10_000 * Math.sin((Math.PI * at) / samples);
    tone.writeInt16LE(Math.round(loudness * Math.sin((2 * Math.PI * hertz * at) / sampleRate)), at * 2);
  }
  return tone;
}

/** The limit that providers of transcription models have. */
const recordingLimitBytes = 25 * 1024 * 1024;

const transcriptionInput = z.object({
  file: z.string(),
  prompt: z.string().nullish(),
  language: z.string().nullish(),
  format: z.enum(["json", "text", "srt", "verbose_json", "vtt"]).nullish(),
  translate: z.boolean().nullish(),
  timestamp_granularities: z.array(z.enum(["word", "segment"])).nullish(),
});

export async function transcribe(clock: Clock, call: GenerationCall): Promise<Generated> {
  const asked = parseRequest(transcriptionInput, call.input);
  const { file: id, prompt, language, format, translate, timestamp_granularities: times } = asked;
  const { delayMs } = triggerOf(prompt ?? "", "prompt");
  if (delayMs) await sleep(clock, delayMs, call.signal);
  const file = uploadOf(call, id, "file", ["audio", "video"]);
  const bytes = await file.read(recordingLimitBytes);
  call.signal.throwIfAborted();
  const duration = await call.secondsOf(bytes, file.mime, file.id);
  if (duration === undefined) throw refusal("The file is no recording that can be read.", file.param);
  const subject = translate ? "The English translation of" : "This is";
  const text = `${subject} a recording of ${Math.round(duration * 1000) / 1000} seconds: ${file.mime}, ${bytes.length} bytes.`;
  const verbose = {
    language: language ?? "english",
    segments: [{ id: 0, start: 0, end: duration, text }],
    ...(times?.includes("word") && { words: wordsOf(text, duration) }),
  };
  return {
    output: {
      text: subtitles[format ?? "text"]?.(text, duration) ?? text,
      duration,
      ...(format === "verbose_json" && verbose),
    },
    usage: { minute: Math.round((duration / 60) * 1e6) / 1e6 },
  };
}

/** All words get the same duration. */
function wordsOf(text: string, seconds: number) {
  const words = text.split(" ");
  const at = (index: number) => (seconds * index) / words.length;
  return words.map((word, index) => ({ word, start: at(index), end: at(index + 1) }));
}

/** One line that lasts for the whole recording. */
const subtitles: Readonly<Record<string, (text: string, seconds: number) => string>> = {
  srt: (text, seconds) => `1\n00:00:00,000 --> ${timeOf(seconds).replace(".", ",")}\n${text}\n\n`,
  vtt: (text, seconds) => `WEBVTT\n\n00:00:00.000 --> ${timeOf(seconds)}\n${text}\n\n`,
};

/** Formats the time as `01:02:03.456`; no recording lasts a day. */
const timeOf = (seconds: number): string =>
  new Date(Math.min(seconds, 86_399) * 1_000).toISOString().slice("1970-01-01T".length, -1);
