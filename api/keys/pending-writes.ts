import { type Clock, sleep } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { retry } from "#platform/retry";

type Write = () => Promise<void>;

const maxPending = 10_000;
const retryDelayMs = 1_000;
/** A server that takes over after a failover may not have the writes of the last seconds. */
const losableMs = 5_000;

/**
 * Idempotent writes that must be made, but not at once. Failed ones are retried every second, in any order, so that an
 * outage of Redis does not keep the slots of finished calls taken until they expire.
 */
export function createPendingWrites({ clock, log }: { clock: Clock; log: Logger }) {
  /** When each recent write was made, the earliest first. */
  const recent = new Map<Write, number>();
  let pending = 0;

  async function repeat(write: Write): Promise<void> {
    if (pending === maxPending) return;
    pending++;
    await sleep(clock, retryDelayMs);
    await retry({ clock, backoff: { firstMs: retryDelayMs, maxMs: retryDelayMs } }, write);
    pending--;
  }

  function defer(write: Write): void {
    if (pending === 0) log.warn("redis is unavailable; the limits of finished calls are updated when it is back");
    void repeat(write);
  }

  return {
    defer,
    /** To be called after a reconnect: repeats what a failover may have lost. */
    repeatRecent(): void {
      for (const write of recent.keys()) void repeat(write);
      recent.clear();
    },
    /** Makes the write now, or later. Never rejects. */
    async run(write: Write): Promise<void> {
      try {
        await write();
      } catch {
        return defer(write);
      }
      const now = clock.now();
      recent.set(write, now);
      for (const [earlier, at] of recent) {
        if (now - at <= losableMs) break;
        recent.delete(earlier);
      }
    },
  };
}
