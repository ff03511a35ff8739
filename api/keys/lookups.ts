import type { Clock } from "#platform/clock";
import type { Epoch } from "./epoch.ts";

interface Entry<T> {
  readonly epoch: string;
  readonly readAt: number;
  readonly found: Promise<T | undefined>;
}

const mostEntries = 10_000;
/** A change that reached MongoDB but not Redis is in force after this at the latest. */
const mostAgeMs = 30_000;

/**
 * What was read from MongoDB, kept for as long as the epoch under which the reading began is the one last heard.
 * Lookups of the same thing at the same time are one. What does not exist is not remembered: a flood of made-up
 * secrets must not push out the real ones.
 */
export function createLookups<T>({ clock, epoch }: { clock: Clock; epoch: Pick<Epoch, "last"> }) {
  const entries = new Map<string, Entry<T>>();

  return async function lookUp(name: string, read: (epoch: string) => Promise<T | undefined>): Promise<T | undefined> {
    const now = epoch.last();
    const known = entries.get(name);
    if (known && known.epoch === now && clock.now() - known.readAt < mostAgeMs) return known.found;
    const entry = { epoch: now, readAt: clock.now(), found: read(now) };
    entries.delete(name);
    entries.set(name, entry);
    for (const oldest of entries.keys()) {
      if (entries.size <= mostEntries) break;
      entries.delete(oldest);
    }
    const forget = () => {
      if (entries.get(name) === entry) entries.delete(name);
    };
    try {
      const found = await entry.found;
      if (found === undefined) forget();
      return found;
    } catch (error) {
      forget();
      throw error;
    }
  };
}
