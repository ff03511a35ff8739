import { expect, test } from "vitest";
import { createBackground } from "../../shared/platform/concurrency/background.ts";
import { createLogger } from "../../shared/platform/logger.ts";

test("settled waits for all work, including work that it starts, and a rejection is logged once with its fields", async () => {
  const lines: string[] = [];
  const background = createBackground({ log: createLogger("test", "info", { write: (line) => lines.push(line) }) });
  await background.settled();

  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  background.run(
    "the first failed",
    first.promise.then(() => background.run("the second failed", second.promise, { requestId: "req_2" })),
  );
  let done = false;
  const settled = background.settled().then(() => (done = true));
  first.resolve();
  await new Promise(setImmediate);
  expect(done).toBe(false);
  second.reject(new Error("broken"));
  await settled;
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 50, msg: "the second failed", requestId: "req_2", err: { message: "broken" } },
  ]);
});
