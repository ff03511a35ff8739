/** A bound on concurrent attempts. */
export function createSlots(limit: number) {
  let free = limit;
  /** Each function grants a slot to a waiting call. */
  const queue = new Set<() => void>();
  return {
    /** Used by `takeFirstSlot`. */
    queue,
    load: () => ({ running: limit - free, waiting: queue.size }),
    take(): boolean {
      if (free === 0) return false;
      free--;
      return true;
    },
    release(): void {
      // The slot is passed on directly, so that a new call does not overtake those that wait.
      for (const grant of queue) return grant();
      free++;
    },
  };
}

export type Slots = ReturnType<typeof createSlots>;

/** Takes the first free slot among the candidates, or waits for one. Rejects with the signal's reason. */
export async function takeFirstSlot<T extends { readonly upstream: { readonly slots: Slots } }>(
  candidates: readonly T[],
  signal: AbortSignal,
): Promise<T> {
  const free = candidates.find(({ upstream }) => upstream.slots.take());
  if (free) return free;
  return new Promise((resolve, reject) => {
    const grants = candidates.map((candidate) => ({
      queue: candidate.upstream.slots.queue,
      grant: () => {
        stopWaiting();
        resolve(candidate);
      },
    }));
    const stopWaiting = () => {
      for (const { queue, grant } of grants) queue.delete(grant);
      signal.removeEventListener("abort", onAbort);
    };
    const onAbort = () => {
      stopWaiting();
      reject(signal.reason);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    for (const { queue, grant } of grants) queue.add(grant);
  });
}
