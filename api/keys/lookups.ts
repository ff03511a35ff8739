import type { Uses } from "#platform/uses";
import type { Epoch } from "./epoch.ts";

interface Entry<T> {
  readonly epoch: string;
  readonly readAt: number;
  readonly found: Promise<T | undefined>;
}

const maxEntries = 10_000;
/** A change that reached MongoDB but not Redis takes effect after this time at the latest. */
const maxAgeMs = 30_000;

/**
 * Caches reads from MongoDB for as long as the epoch under which a read began is the last one observed. Concurrent lookups
 * of a name share one read. Missing keys are not cached: a flood of invented secrets must not evict the real ones.
 */
export function createLookups<T>({ clock, epoch }: Uses<"clock"> & { epoch: Pick<Epoch, "last"> }) {
  const entries = new Map<string, Entry<T>>();

  return async function lookUp(name: string, read: (epoch: string) => Promise<T | undefined>): Promise<T | undefined> {
    const current = epoch.last();
    const cached = entries.get(name);
    if (cached && cached.epoch === current && clock.now() - cached.readAt < maxAgeMs) return cached.found;
    const entry = { epoch: current, readAt: clock.now(), found: read(current) };
    entries.delete(name);
    entries.set(name, entry);
    for (const oldest of entries.keys()) {
      if (entries.size <= maxEntries) break;
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
