import type { Generated, GenerationCall } from "../provider.ts";
import type { ProviderClient } from "../wire/provider-client.ts";
import { keepAnswer } from "../wire/store-stream.ts";

/** The sound goes on as it is made. */
export async function speech(provider: ProviderClient, call: GenerationCall): Promise<Generated> {
  const { text, input = text, format, response_format = format, stream_format: _, ...fields } = call.input;
  // JSON leaves out what is undefined.
  const json = { ...fields, input, response_format, model: call.model };
  await keepAnswer(provider, call, await provider.send({ path: "/audio/speech", json, accept: anySound }, call));
  return { output: {}, usage: { character: codePoints(String(input)) } };
}

const anySound = "audio/*, */*;q=0.5";

function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}
