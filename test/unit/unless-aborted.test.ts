import { expect, test } from "vitest";
import { systemClock } from "../../shared/platform/clock.ts";
import { retry } from "../../shared/platform/concurrency/retry.ts";
import { unlessAborted } from "../../shared/platform/concurrency/unless-aborted.ts";

test("the work's own result or error counts while nothing is aborted", async () => {
  const { signal } = new AbortController();
  expect(await unlessAborted(signal, async () => 1)).toBe(1);
  expect(await unlessAborted(undefined, async () => 1)).toBe(1);
  await expect(unlessAborted(signal, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
});

test("retries end with the signal's reason at once, also while an attempt hangs", async () => {
  const controller = new AbortController();
  const { promise: started, resolve } = Promise.withResolvers<void>();
  const attempt = () => {
    resolve();
    return new Promise<never>(() => {});
  };
  const { signal } = controller;
  const options = { clock: systemClock, signal, backoff: { firstMs: 60_000, maxMs: 60_000 } };
  const retried = retry(options, () => unlessAborted(signal, attempt));
  await started;
  controller.abort(new Error("shutting down"));
  await expect(retried).rejects.toThrow("shutting down");
  await expect(unlessAborted(signal, attempt)).rejects.toThrow("shutting down");
});
