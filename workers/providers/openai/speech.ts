import type { Generated, GenerationCall } from "../provider.ts";
import { keepAnswer } from "../wire/keep-stream.ts";
import type { Maker } from "../wire/maker.ts";

/** The sound goes on as it is made. */
export async function speech(maker: Maker, call: GenerationCall): Promise<Generated> {
  const { text, input = text, format, response_format = format, stream_format: _, ...fields } = call.input;
  // JSON leaves out what is undefined.
  const json = { ...fields, input, response_format, model: call.model };
  await keepAnswer(maker, call, await maker.send({ path: "/audio/speech", json, accept: anySound }, call));
  return { output: {}, usage: { character: codePoints(String(input)) } };
}

const anySound = "audio/*, */*;q=0.5";

function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}
