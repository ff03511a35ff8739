import { type Clock, sleep } from "#platform/clock";

const firstWaitMs = 20;
const longestWaitMs = 1_000;

/** Writes again, with back-off, until it succeeds. Rejects only when `signal` aborts, and then at once. */
export async function untilDone<T>(clock: Clock, signal: AbortSignal | undefined, write: () => Promise<T>): Promise<T> {
  const aborted = onAbort(signal);
  try {
    for (let waitMs = firstWaitMs; ; waitMs = Math.min(2 * waitMs, longestWaitMs)) {
      signal?.throwIfAborted();
      try {
        return await (aborted.promise ? Promise.race([write(), aborted.promise]) : write());
      } catch {
        // Logged once for the whole group, where it failed.
        await sleep(clock, waitMs, signal);
      }
    }
  } finally {
    aborted.forget();
  }
}

function onAbort(signal: AbortSignal | undefined) {
  if (!signal) return { promise: undefined, forget() {} };
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => {});
  const listener = () => reject(signal.reason);
  signal.addEventListener("abort", listener, { once: true });
  return { promise, forget: () => signal.removeEventListener("abort", listener) };
}
