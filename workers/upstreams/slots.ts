/** A bound on the calls in flight. */
export interface Slots {
  take(): boolean;
  release(): void;
  /** For `firstFree`. */
  readonly line: Set<Waiter>;
}

interface Waiter {
  grant(slots: Slots): void;
}

export function createSlots(limit: number): Slots {
  let free = limit;
  const line = new Set<Waiter>();
  const slots: Slots = {
    line,
    take() {
      if (free === 0) return false;
      free--;
      return true;
    },
    release() {
      // Handed over, not freed: nobody who comes just now goes before those in line.
      for (const waiter of line) return waiter.grant(slots);
      free++;
    },
  };
  return slots;
}

/** Takes a slot of any of these: the first that has one, else the first that gets one. Rejects with the signal's reason. */
export async function firstFree<T extends { readonly slots: Slots }>(
  candidates: readonly T[],
  signal: AbortSignal,
): Promise<T> {
  const free = candidates.find(({ slots }) => slots.take());
  if (free) return free;
  return new Promise((resolve, reject) => {
    const leave = () => {
      for (const { slots } of candidates) slots.line.delete(waiter);
      signal.removeEventListener("abort", onAbort);
    };
    const onAbort = () => {
      leave();
      reject(signal.reason);
    };
    const waiter: Waiter = {
      grant(granted) {
        leave();
        resolve(candidates.find(({ slots }) => slots === granted) as T);
      },
    };
    signal.addEventListener("abort", onAbort, { once: true });
    for (const { slots } of candidates) slots.line.add(waiter);
  });
}
