import { expect, onTestFinished, test } from "vitest";
import { createLogger } from "#platform/logger";
import { createLimitedThread } from "../../workers/limited-thread.ts";
import { createManualClock } from "../support/manual-clock.ts";

/** Answers at once, and then says so through the memory that it shares with a paused process. */
const answering = `
import { parentPort } from "node:worker_threads";
parentPort.on("message", (answered) => {
  parentPort.postMessage({ isDone: true });
  Atomics.store(answered, 0, 1);
  Atomics.notify(answered, 0);
});
parentPort.postMessage("ready");
`;

test("an answer that arrives while the process is paused past the limit counts", async () => {
  const clock = createManualClock();
  const thread = createLimitedThread<Int32Array, { readonly isDone: true }>(
    {
      name: "answering",
      url: new URL(`data:text/javascript,${encodeURIComponent(answering)}`),
      limitMs: 1_000,
      waitLimitMs: 5_000,
      maxWaiting: 1,
      maxOfAccount: 1,
    },
    { clock, log: createLogger("test", "silent") },
  );
  onTestFinished(() => thread.close());
  const answered = new Int32Array(new SharedArrayBuffer(4));
  const task = () => {
    process.nextTick(() => {
      Atomics.wait(answered, 0, 0);
      clock.advance(1_000);
    });
    return answered;
  };
  expect(await thread.run(task, "acct_1", new AbortController().signal)).toEqual({ result: { isDone: true } });
});
