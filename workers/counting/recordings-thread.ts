/** The thread that measures recordings, one after another. Its first message says that it is ready. */
import { parentPort } from "node:worker_threads";
import { secondsOf } from "./recording-length.ts";
import type { Measurement, RecordingTask } from "./recordings.ts";

async function answer({ bytes, mime }: RecordingTask): Promise<void> {
  const seconds = await secondsOf(Buffer.from(bytes.buffer), mime);
  parentPort?.postMessage({ seconds } satisfies Measurement);
}

parentPort?.on("message", (task: RecordingTask) => void answer(task));
parentPort?.postMessage("ready");
