/** Calls that generate files, or read one. Their inputs are documented in ../index.ts. */
import type { Task } from "#catalog";
import type { Clock } from "#platform/clock";
import { type Generated, type GenerationCall, UpstreamFailure } from "../../provider.ts";
import { makeSpeech, transcribe } from "./audio.ts";
import { makeImages } from "./images.ts";
import { makeVideo } from "./video.ts";

const tasks: Readonly<Partial<Record<Task, (call: GenerationCall, clock: Clock) => Promise<Generated>>>> = {
  images: makeImages,
  speech: makeSpeech,
  transcription: transcribe,
  video: makeVideo,
};

export async function generate(call: GenerationCall, clock: Clock): Promise<Generated> {
  call.signal.throwIfAborted();
  const work = tasks[call.task];
  if (!work) throw new UpstreamFailure("misconfigured", `The local models do not do '${call.task}'.`);
  return await untilAborted(call.signal, work(call, clock));
}

/** Rejects with the signal's reason at once. The work itself ends at its next step. */
const untilAborted = <T>(signal: AbortSignal, work: Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    void work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
