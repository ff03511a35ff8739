import { type Clock, systemClock } from "../../shared/platform/clock.ts";

/** The system's time, which the test may move on: what falls due on the way happens at once. */
export function movableClock() {
  const timers = new Set<{ readonly at: number; readonly fire: () => void }>();
  let ahead = 0;
  const now = () => Date.now() + ahead;
  const clock: Clock = {
    ...systemClock,
    now,
    after(ms, fire) {
      const once = () => {
        if (timers.delete(timer)) fire();
      };
      const timer = { at: now() + ms, fire: once };
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
    const due = [...timers].filter(({ at }) => at <= now());
    for (const { fire } of due) fire();
  };
  return { clock, advance };
}
