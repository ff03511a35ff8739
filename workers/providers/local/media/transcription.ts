import { z } from "zod";
import { type Clock, sleep } from "#platform/clock";
import { type Generated, type GenerationCall, UpstreamFailure } from "../../provider.ts";
import { secondsOf } from "../../recording.ts";
import { parseRequest } from "../request.ts";
import { mediaTriggerOf } from "../triggers.ts";
import { uploadOf } from "./uploads.ts";

/** As the providers of transcription models take. */
const limitBytes = 25 * 1024 * 1024;

const input = z.object({ file: z.string(), prompt: z.string().nullish() });

export async function transcribe(call: GenerationCall, clock: Clock): Promise<Generated> {
  const { file: id, prompt } = parseRequest(input, call.input);
  const { delayMs } = mediaTriggerOf(prompt ?? "", "prompt");
  if (delayMs) await sleep(clock, delayMs, call.signal);
  const file = uploadOf(call, id, "file", ["audio", "video"]);
  const bytes = await file.read(limitBytes);
  call.signal.throwIfAborted();
  const duration = await secondsOf(bytes, file.mime);
  if (duration === undefined)
    throw new UpstreamFailure("refused", "The file is no recording that can be read.", { param: file.param });
  const text = `This is a recording of ${Math.round(duration * 1000) / 1000} seconds: ${file.mime}, ${bytes.length} bytes.`;
  return { output: { text, duration }, usage: { minute: Math.round((duration / 60) * 1e6) / 1e6 } };
}
