import { type Clock, systemClock } from "../../shared/platform/clock.ts";

export interface MovableClock {
  readonly clock: Clock;
  /** Moves the time forward, and fires each due timer once. */
  readonly advance: (ms: number) => void;
  /** True if a timer is pending that started this long ago. */
  readonly isWaiting: (ms: number) => boolean;
}

/** The system's time, which a test may move forward. */
export function movableClock(): MovableClock {
  const timers = new Set<{ dueAt: number; readonly fire: () => void; readonly waitMs?: number }>();
  let ahead = 0;
  const now = () => Date.now() + ahead;
  const clock: Clock = {
    now,
    every(ms, tick) {
      const fire = () => {
        timer.dueAt = now() + ms;
        tick();
      };
      const timer = { dueAt: now() + ms, fire };
      timers.add(timer);
      const cancel = systemClock.every(ms, fire);
      return () => {
        timers.delete(timer);
        cancel();
      };
    },
    after(ms, fire) {
      const once = () => {
        cancel();
        if (timers.delete(timer)) fire();
      };
      const timer = { dueAt: now() + ms, fire: once, waitMs: ms };
      timers.add(timer);
      const cancel = systemClock.after(ms, once);
      return () => {
        timers.delete(timer);
        cancel();
      };
    },
  };
  const advance = (ms: number) => {
    ahead += ms;
    const due = [...timers].filter(({ dueAt }) => dueAt <= now());
    for (const { fire } of due) fire();
  };
  return { clock, advance, isWaiting: (ms) => [...timers].some(({ waitMs }) => waitMs === ms) };
}
