import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { statusOf } from "../provider-keys/index.ts";
import { type Provider, UpstreamFailure } from "../providers/provider.ts";

/** A refused key is checked again after this time. */
const recheckMs = 30_000;
const checkTimeoutMs = 10_000;

const isRefusal = (error: unknown): error is UpstreamFailure =>
  error instanceof UpstreamFailure && statusOf(error) === "invalid";

/**
 * Watches whether the provider accepts the operator's key. A call that the provider refuses for its key is not believed, because the
 * caller may have provoked the text of the answer: a request of our own asks, which costs nothing. While it is refused too, no
 * call is made, and it is repeated every 30 s. A provider without such a request is believed if its status is 401, and is
 * called again after that time.
 */
export function createOperatorKey(
  upstream: string,
  provider: Pick<Provider, "check">,
  { clock, log }: { clock: Clock; log: Logger },
) {
  let isRefused = false;
  let nextCheckAt = 0;
  let isChecking = false;
  let stopTimer = () => {};
  let isClosed = false;

  function set(refused: boolean): void {
    if (refused && !isRefused) log.error({ upstream }, "the provider refuses the key of this upstream");
    if (!refused && isRefused) log.info({ upstream }, "the provider accepts the key of this upstream again");
    isRefused = refused;
    if (!refused || isClosed) return;
    nextCheckAt = clock.now() + recheckMs;
    stopTimer();
    stopTimer = clock.after(recheckMs, () => void check());
  }

  async function check(): Promise<void> {
    if (isChecking) return;
    if (!provider.check) return set(false);
    isChecking = true;
    try {
      await provider.check({ signal: AbortSignal.timeout(checkTimeoutMs), log });
      set(false);
    } catch (error) {
      // Another failure says nothing about the key.
      set(isRefusal(error) || isRefused);
    } finally {
      isChecking = false;
      nextCheckAt = clock.now() + recheckMs;
    }
  }

  return {
    /** Milliseconds until the key is checked again, 0 if it is not refused. */
    blockedForMs: (): number => (isRefused ? Math.max(1, nextCheckAt - clock.now()) : 0),
    /** Notes that a call failed. */
    noteFailure(failure: UpstreamFailure): void {
      if (isRefused || !isRefusal(failure)) return;
      if (!provider.check) return failure.status === 401 ? set(true) : undefined;
      if (clock.now() >= nextCheckAt) void check();
    },
    close(): void {
      isClosed = true;
      stopTimer();
    },
  };
}

export type OperatorKey = ReturnType<typeof createOperatorKey>;
