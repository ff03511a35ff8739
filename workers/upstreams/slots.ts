/** A bound on concurrent attempts. */
export interface Slots {
  take(): boolean;
  release(): void;
  /** For `takeFirstSlot`. */
  readonly queue: Set<Waiter>;
}

type Waiter = (slots: Slots) => void;

export function createSlots(limit: number): Slots {
  let free = limit;
  const queue = new Set<Waiter>();
  const slots: Slots = {
    queue,
    take() {
      if (free === 0) return false;
      free--;
      return true;
    },
    release() {
      // Passed on directly, so that a call that has just arrived does not overtake those that wait.
      for (const grant of queue) return grant(slots);
      free++;
    },
  };
  return slots;
}

/** Takes the first free slot among the candidates, or waits for one. Rejects with the signal's reason. */
export async function takeFirstSlot<T extends { readonly upstream: { readonly slots: Slots } }>(
  candidates: readonly T[],
  signal: AbortSignal,
): Promise<T> {
  const free = candidates.find(({ upstream }) => upstream.slots.take());
  if (free) return free;
  return new Promise((resolve, reject) => {
    const stopWaiting = () => {
      for (const { upstream } of candidates) upstream.slots.queue.delete(grant);
      signal.removeEventListener("abort", onAbort);
    };
    const onAbort = () => {
      stopWaiting();
      reject(signal.reason);
    };
    const grant: Waiter = (granted) => {
      stopWaiting();
      resolve(candidates.find(({ upstream }) => upstream.slots === granted) as T);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    for (const { upstream } of candidates) upstream.slots.queue.add(grant);
  });
}
