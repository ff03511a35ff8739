import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { retry } from "../../shared/platform/concurrency/retry.ts";
import { createManualClock } from "../support/manual-clock.ts";

const backoff = { firstMs: 100, maxMs: 300 };

test("the pause doubles up to its limit, and the first success counts", async () => {
  const clock = createManualClock();
  const startedAt = clock.now();
  const attemptsAt: number[] = [];
  const retried = retry({ clock, backoff }, async () => {
    attemptsAt.push(clock.now() - startedAt);
    if (attemptsAt.length < 5) throw new Error("not yet");
    return "done";
  });
  for (let ms = 0; ms < 1_200; ms += 50) {
    await setImmediate();
    clock.advance(50);
  }
  expect(await retried).toBe("done");
  expect(attemptsAt).toEqual([0, 100, 300, 600, 900]);
});

test("an error that is not to be retried rejects at once", async () => {
  const clock = createManualClock();
  const work = () => Promise.reject(new TypeError("a defect"));
  await expect(retry({ clock, backoff, retryIf: (error) => !(error instanceof TypeError) }, work)).rejects.toThrow(
    "a defect",
  );
  expect(clock.pending()).toBe(0);
});

test("an abort ends the pause with its reason", async () => {
  const clock = createManualClock();
  const controller = new AbortController();
  const retried = retry({ clock, signal: controller.signal, backoff }, () => Promise.reject(new Error("not yet")));
  await setImmediate();
  controller.abort(new Error("shutting down"));
  await expect(retried).rejects.toThrow("shutting down");
  expect(clock.pending()).toBe(0);
});
