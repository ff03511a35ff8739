import { expect, onTestFinished, test } from "vitest";
import { createLogger } from "#platform/logger";
import { createLimitedThread } from "../../workers/limited-thread.ts";
import { createManualClock } from "../support/manual-clock.ts";

const open = <Task>(module: string, clock = createManualClock()) => {
  const options = {
    name: "test",
    url: new URL(`data:text/javascript,${encodeURIComponent(module)}`),
    limitMs: 1_000,
    waitLimitMs: 5_000,
    maxWaiting: 10,
    maxOfAccount: 10,
  };
  const thread = createLimitedThread<Task, { readonly isDone: true }>(options, {
    clock,
    log: createLogger("test", "silent"),
  });
  onTestFinished(() => thread.close());
  const run = (account: string, task: () => Task | Promise<Task>) =>
    thread.run(task, account, new AbortController().signal);
  return { clock, run };
};

const done = { result: { isDone: true } };

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
  const { clock, run } = open<Int32Array>(answering);
  const answered = new Int32Array(new SharedArrayBuffer(4));
  const task = () => {
    process.nextTick(() => {
      Atomics.wait(answered, 0, 0);
      clock.advance(1_000);
    });
    return answered;
  };
  expect(await run("acct_1", task)).toEqual(done);
});

/** Answers unless the task is to hang. */
const hanging = `
import { parentPort } from "node:worker_threads";
parentPort.on("message", (task) => {
  if (task === "hang") for (;;);
  parentPort.postMessage({ isDone: true });
});
parentPort.postMessage("ready");
`;

test("an account whose task took too long waits behind the others", async () => {
  const { clock, run } = open<"hang" | "answer">(hanging);
  const ended: string[] = [];
  const runAs = async (name: string, task: "hang" | "answer") => {
    const begun = Promise.withResolvers<void>();
    const outcome = run(name, () => {
      begun.resolve();
      return task;
    }).then((result) => {
      ended.push(name);
      return result;
    });
    return { begun: begun.promise, outcome };
  };
  const first = await runAs("slow", "hang");
  await first.begun;
  const later = [await runAs("slow", "answer"), await runAs("other", "answer"), await runAs("third", "answer")];
  clock.advance(1_000);
  expect(await first.outcome).toBe("ended");
  expect(await Promise.all(later.map(({ outcome }) => outcome))).toEqual([done, done, done]);
  expect(ended).toEqual(["slow", "other", "third", "slow"]);
});

test("a task that cannot be passed to the thread is refused, and the next one runs", async () => {
  const { run } = open<unknown>(hanging);
  const fails = run("acct_1", () => Promise.reject(new RangeError("Array buffer allocation failed")));
  const cannotBeCloned = run("acct_2", () => () => {});
  expect(await Promise.all([fails, cannotBeCloned, run("acct_3", () => "answer")])).toEqual(["busy", "busy", done]);
});
