import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";

type Write = () => Promise<void>;

const mostOwed = 10_000;
const everyMs = 1_000;
/** A server that takes over may not have what was written so shortly before. */
const losableMs = 5_000;

/**
 * Writes that must be made some time and may be made twice. What fails is tried again every second, in any order, so that
 * an outage of Redis does not keep the slots of finished calls taken until their deadlines.
 */
export function createPendingWrites({ clock, log }: { clock: Clock; log: Logger }) {
  const owed = new Set<Write>();
  /** When each was made, the earliest first. */
  const made = new Map<Write, number>();
  let stop: (() => void) | undefined;
  let paying = false;

  async function payAll() {
    if (paying) return;
    paying = true;
    try {
      for (const write of owed) {
        owed.delete(write);
        await write().catch((error: unknown) => {
          // To the end of the line: one that can never succeed must not hold up the others.
          owed.add(write);
          throw error;
        });
      }
      stop?.();
      stop = undefined;
    } catch {
      // Still away: the next round tries again.
    } finally {
      paying = false;
    }
  }

  function later(write: Write) {
    if (owed.size === 0) log.warn("redis does not take the limits of finished calls; they follow when it does");
    owe(write);
  }

  function owe(write: Write) {
    if (owed.size < mostOwed) owed.add(write);
    stop ??= clock.every(everyMs, () => void payAll());
  }

  function note(write: Write) {
    const now = clock.now();
    made.set(write, now);
    for (const [earlier, at] of made) {
      if (now - at <= losableMs) break;
      made.delete(earlier);
    }
  }

  return {
    later,
    /** To be called after a reconnect: makes again what a failover may have lost. */
    again() {
      for (const write of made.keys()) owe(write);
      made.clear();
    },
    /** Makes the write now, or later. Never rejects. */
    async pay(write: Write): Promise<void> {
      try {
        await write();
        note(write);
      } catch {
        later(write);
      }
    },
  };
}
