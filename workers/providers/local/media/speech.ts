import { setImmediate } from "node:timers/promises";
import { z } from "zod";
import { type Clock, sleep } from "#platform/clock";
import type { Generated, GenerationCall } from "../../provider.ts";
import { wavHeader } from "../../wav.ts";
import { parseRequest } from "../request.ts";
import { mediaTriggerOf } from "../triggers.ts";
import { createVoice, sampleRate } from "./voice.ts";

const mostCharacters = 4096;
const charactersPerSecond = 15;
const leastSeconds = 0.3;
/** Takes a millisecond or two; the event loop gets a turn after each. */
const pieceSamples = sampleRate / 4;

const input = z.object({
  text: z
    .string()
    .min(1)
    .refine((text) => codePoints(text) <= mostCharacters, `must have at most ${mostCharacters} characters`),
  voice: z.string().min(1).max(64).nullish(),
  format: z.enum(["wav"]).nullish(),
});

function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

export async function makeSpeech(call: GenerationCall, clock: Clock): Promise<Generated> {
  const { text, voice } = parseRequest(input, call.input);
  const { delayMs } = mediaTriggerOf(text, "text");
  if (delayMs) await sleep(clock, delayMs, call.signal);
  const characters = Array.from(text);
  const seconds = Math.max(leastSeconds, characters.length / charactersPerSecond);
  const perCharacter = Math.round((seconds * sampleRate) / characters.length);
  const samples = perCharacter * characters.length;
  await call.keep(wavOf(characters, perCharacter, voice ?? "alto", call.signal));
  return {
    output: { format: "wav", duration: samples / sampleRate },
    usage: { character: characters.length },
  };
}

async function* wavOf(
  characters: readonly string[],
  perCharacter: number,
  name: string,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void, undefined> {
  const voice = createVoice(name);
  let piece = [wavHeader(perCharacter * characters.length, sampleRate)];
  let samples = 0;
  for (const character of characters) {
    piece.push(voice.say(character, perCharacter));
    samples += perCharacter;
    if (samples < pieceSamples) continue;
    yield Buffer.concat(piece);
    await setImmediate();
    signal.throwIfAborted();
    piece = [];
    samples = 0;
  }
  if (piece.length > 0) yield Buffer.concat(piece);
}
