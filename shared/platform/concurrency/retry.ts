import { type Clock, sleep } from "../clock.ts";

export interface RetryOptions {
  readonly clock: Clock;
  /** Ends the wait between attempts, and the retries: `retry` rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** The first and the longest pause. Each pause is twice the previous one. Equal numbers make a constant pause. */
  readonly backoff: { readonly firstMs: number; readonly maxMs: number };
  /** Returns true if the error is retryable. Defaults to always. */
  readonly retryIf?: (error: unknown) => boolean;
}

/**
 * Calls `work` until it succeeds. Rejects with the error that `retryIf` refuses, or with the signal's reason. It does
 * not interrupt `work`: pass the signal on, or race it, where the work itself must stop.
 */
export async function retry<T>(
  { clock, signal, backoff, retryIf = () => true }: RetryOptions,
  work: () => Promise<T>,
): Promise<T> {
  for (let pauseMs = backoff.firstMs; ; pauseMs = Math.min(2 * pauseMs, backoff.maxMs)) {
    signal?.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      if (!retryIf(error)) throw error;
      await sleep(clock, pauseMs, signal);
    }
  }
}
