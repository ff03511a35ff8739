import { expect, test } from "vitest";
import { connect } from "../support/jobs-setup.ts";
import { testStores } from "../support/servers.ts";

const pause = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

test("a process that pauses for seconds keeps its connection, and gets the replies that came in the meantime", async () => {
  const redis = await connect(await testStores(), "fail-fast");
  let closed = 0;
  redis.on("close", () => closed++);
  for (let i = 0; i < 3; i++) {
    const reply = redis.ping();
    // The command is sent before the pause.
    await new Promise(setImmediate);
    pause(1_500);
    expect(await reply).toBe("PONG");
  }
  expect(closed).toBe(0);
});
