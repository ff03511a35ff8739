import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";

type Write = () => Promise<void>;

const mostOwed = 10_000;
const everyMs = 1_000;

/**
 * Writes that must be made some time and may be made twice. What fails is tried again every second, in any order, so that
 * an outage of Redis does not keep the slots of finished calls taken until their deadlines.
 */
export function createOwed({ clock, log }: { clock: Clock; log: Logger }) {
  const owed = new Set<Write>();
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
    if (owed.size < mostOwed) owed.add(write);
    stop ??= clock.every(everyMs, () => void payAll());
  }

  return {
    later,
    /** Makes the write now, or later. Never rejects. */
    async pay(write: Write): Promise<void> {
      try {
        await write();
      } catch {
        later(write);
      }
    },
  };
}
