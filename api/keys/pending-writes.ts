import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";

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
  const pending = new Set<Write>();
  /** When each recent write was made, the earliest first. */
  const recent = new Map<Write, number>();
  let stopRetrying: (() => void) | undefined;
  let flushing = false;

  async function flush() {
    if (flushing) return;
    flushing = true;
    try {
      for (const write of pending) {
        pending.delete(write);
        await write().catch((error: unknown) => {
          // To the end of the queue: a write that can never succeed must not hold up the others.
          pending.add(write);
          throw error;
        });
      }
      stopRetrying?.();
      stopRetrying = undefined;
    } catch {
      // Redis is still unavailable: the next round tries again.
    } finally {
      flushing = false;
    }
  }

  function add(write: Write) {
    if (pending.size < maxPending) pending.add(write);
    stopRetrying ??= clock.every(retryDelayMs, () => void flush());
  }

  function defer(write: Write) {
    if (pending.size === 0) log.warn("redis is unavailable; the limits of finished calls are updated when it is back");
    add(write);
  }

  return {
    defer,
    /** To be called after a reconnect: repeats what a failover may have lost. */
    repeatRecent() {
      for (const write of recent.keys()) add(write);
      recent.clear();
    },
    /** Makes the write now, or later. Never rejects. */
    async run(write: Write): Promise<void> {
      try {
        await write();
        const now = clock.now();
        recent.set(write, now);
        for (const [earlier, at] of recent) {
          if (now - at <= losableMs) break;
          recent.delete(earlier);
        }
      } catch {
        defer(write);
      }
    },
  };
}
