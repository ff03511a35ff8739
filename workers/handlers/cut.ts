import type { Clock } from "#platform/clock";
import { type AbortCause, Aborted } from "../running.ts";

/** How long a stream that nobody reads any more is read for the usage that only its end tells. */
const readOnMs = 30_000;

const mayReadOn: ReadonlySet<AbortCause | undefined> = new Set(["disconnected", "deadline"]);

/** The end of a stream from outside: its caller disconnects, its deadline comes, this worker stops. */
export interface Cut {
  /** For the provider's stream. */
  readonly signal: AbortSignal;
  /** What ended it. From then on nothing is delivered, though the provider may still be read. */
  reason(): unknown;
  close(): void;
}

/**
 * A caller who disconnects, and a deadline, end the provider's stream at once, unless `readsOn`: then it is read on, for
 * the usage. All other ends are ours, and immediate.
 */
export function createCut(
  { signal, disconnected, clock }: { signal: AbortSignal; disconnected: AbortSignal; clock: Clock },
  readsOn: () => boolean,
): Cut {
  const reading = new AbortController();
  let reason: unknown;
  let stopTimer = () => {};

  const end = (by: unknown) => {
    const isFirst = reason === undefined;
    reason ??= by;
    const cause = by instanceof Aborted ? by.cause : undefined;
    if (!mayReadOn.has(cause) || (isFirst && !readsOn())) reading.abort(reason);
    else if (isFirst) stopTimer = clock.after(readOnMs, () => reading.abort(reason));
  };
  const onAbort = () => end(signal.reason);
  const onDisconnect = () => end(disconnected.reason);
  if (signal.aborted) onAbort();
  else if (disconnected.aborted) onDisconnect();
  signal.addEventListener("abort", onAbort, { once: true });
  disconnected.addEventListener("abort", onDisconnect, { once: true });

  return {
    signal: reading.signal,
    reason: () => reason,
    close() {
      stopTimer();
      signal.removeEventListener("abort", onAbort);
      disconnected.removeEventListener("abort", onDisconnect);
    },
  };
}
