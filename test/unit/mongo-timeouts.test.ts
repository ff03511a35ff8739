import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { withMongoTimeout } from "../../shared/platform/mongo/timeouts.ts";

/** Answers at once, and then says so through the memory that it shares with a paused process. */
const answering = `
const { parentPort, workerData } = require("node:worker_threads");
parentPort.postMessage("answer");
Atomics.store(workerData, 0, 1);
Atomics.notify(workerData, 0);
`;

test("an answer that arrives while the process is paused past the limit counts", async () => {
  const answered = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(answering, { eval: true, workerData: answered });
  const limitMs = 1;
  const operation = withMongoTimeout(once(worker, "message"), limitMs);
  const startedAt = performance.now();
  Atomics.wait(answered, 0, 0);
  while (performance.now() - startedAt < 2 * limitMs);
  expect(await operation).toEqual(["answer"]);
  await worker.terminate();
});

test("an operation without an answer is given up", async () => {
  await expect(withMongoTimeout(new Promise(() => undefined), 1)).rejects.toThrow("MongoDB has not answered for 1 ms");
});
