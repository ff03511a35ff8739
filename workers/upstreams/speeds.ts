import { type Speeds, speedKey } from "#jobs";
import type { Clock } from "#platform/clock";

/** The weight of the newest call in an average. */
const newestShare = 0.2;
/** Averages that were not updated for this long are dropped. */
const maxAgeMs = 10 * 60_000;
/** The worker's record is written every second, and read by every API instance. */
const maxEntries = 64;
const maxCalls = 1_000;

type Averages = Omit<Speeds[string][string], "calls">;
type Average = keyof Averages;

/** A served call as it was measured. */
interface Served {
  readonly upstream: string;
  /** The upstream's own name for the model. */
  readonly model: string;
  readonly measured: Averages;
}

/** The speed of each upstream for each model: moving averages over the calls of this process. */
export function createSpeeds(clock: Clock) {
  /** Ordered by update, the oldest first. */
  const entries = new Map<string, { served: Served; calls: number; averages: Averages; at: number }>();
  return {
    note(served: Served): void {
      const key = speedKey(served.upstream, served.model);
      const { averages = {}, calls = 0 } = entries.get(key) ?? {};
      const next: Averages = { ...averages };
      for (const [name, value] of Object.entries(served.measured) as [Average, number][]) {
        const before = averages[name] ?? value;
        next[name] = before + (value - before) * newestShare;
      }
      entries.delete(key);
      entries.set(key, { served, calls: Math.min(maxCalls, calls + 1), averages: next, at: clock.now() });
      const [oldest] = entries.keys();
      if (entries.size > maxEntries && oldest !== undefined) entries.delete(oldest);
    },
    /** Drops averages that are too old. */
    recent(): Speeds {
      const recent: Speeds = {};
      for (const [key, { served, calls, averages, at }] of entries) {
        if (clock.now() - at > maxAgeMs) {
          entries.delete(key);
          continue;
        }
        const rounded = Object.fromEntries(
          (Object.entries(averages) as [Average, number][]).map(([name, value]) => [name, Math.round(value * 10) / 10]),
        );
        const models = recent[served.upstream] ?? {};
        recent[served.upstream] = { ...models, [served.model]: { calls, ...rounded } };
      }
      return recent;
    },
  };
}
