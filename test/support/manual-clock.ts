import type { Clock } from "../../shared/platform/clock.ts";

export interface ManualClock extends Clock {
  /** Moves the time, and fires due timers in order. */
  advance(ms: number): void;
  /** The number of active timers. */
  pending(): number;
}

/** A clock that only the test moves. */
export function createManualClock(startMs = Date.UTC(2026, 0, 1)): ManualClock {
  let now = startMs;
  const timers = new Set<{ at: number; fire: () => void; everyMs?: number }>();
  const add = (ms: number, fire: () => void, everyMs?: number) => {
    const timer = { at: now + ms, fire, ...(everyMs !== undefined && { everyMs }) };
    timers.add(timer);
    return () => void timers.delete(timer);
  };
  return {
    now: () => now,
    every: (ms, tick) => add(ms, tick, ms),
    after: (ms, fire) => add(ms, fire),
    pending: () => timers.size,
    advance(ms) {
      const until = now + ms;
      for (;;) {
        const due = [...timers].filter(({ at }) => at <= until).toSorted((a, b) => a.at - b.at)[0];
        if (!due) break;
        now = Math.max(now, due.at);
        if (due.everyMs === undefined) timers.delete(due);
        else due.at += due.everyMs;
        due.fire();
      }
      now = until;
    },
  };
}
