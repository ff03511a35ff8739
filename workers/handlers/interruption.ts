import type { Clock } from "#platform/clock";
import { type AbortCause, Aborted } from "../running.ts";

/** Maximum time that an interrupted stream is read on for the usage that only its end reports. */
const usageWaitMs = 30_000;

const mayReadOn: ReadonlySet<AbortCause | undefined> = new Set(["disconnected", "deadline"]);

/**
 * The end of a stream from outside: its caller disconnects, its deadline passes, this worker stops.
 *
 * A disconnected caller or a deadline ends the provider's stream at once, unless `awaitsUsage`: then it is read on. All
 * other interruptions end it at once.
 */
export function watchInterruption(
  { signal, disconnected, clock }: { signal: AbortSignal; disconnected: AbortSignal; clock: Clock },
  awaitsUsage: () => boolean,
) {
  const reading = new AbortController();
  let reason: unknown;
  let stopTimer = () => {};

  const interrupt = (by: unknown) => {
    const isFirst = reason === undefined;
    reason ??= by;
    const cause = by instanceof Aborted ? by.cause : undefined;
    if (!mayReadOn.has(cause) || (isFirst && !awaitsUsage())) reading.abort(reason);
    else if (isFirst) stopTimer = clock.after(usageWaitMs, () => reading.abort(reason));
  };
  const onAbort = () => interrupt(signal.reason);
  const onDisconnect = () => interrupt(disconnected.reason);
  if (signal.aborted) onAbort();
  else if (disconnected.aborted) onDisconnect();
  signal.addEventListener("abort", onAbort, { once: true });
  disconnected.addEventListener("abort", onDisconnect, { once: true });

  return {
    /** Passed to the provider's stream. */
    signal: reading.signal,
    /** Once set, nothing more is delivered, though the provider may still be read. */
    reason: () => reason,
    close(): void {
      stopTimer();
      signal.removeEventListener("abort", onAbort);
      disconnected.removeEventListener("abort", onDisconnect);
    },
  };
}
