/** A line of a batch takes only a part of the slots, and waits behind all other calls. */
export type SlotUser = "call" | "line";
const inOrder: readonly SlotUser[] = ["call", "line"];

/** A bound on concurrent attempts, and on those of them that are of lines of batches. */
export function createSlots(limit: number, lineLimit = limit) {
  const running = { call: 0, line: 0 };
  /** Each function grants a slot to a waiting call. */
  const queues = { call: new Set<() => void>(), line: new Set<() => void>() };
  const total = () => running.call + running.line;

  function take(user: SlotUser): boolean {
    if (total() >= limit || (user === "line" && running.line >= lineLimit)) return false;
    running[user]++;
    return true;
  }

  return {
    /** Used by `takeFirstSlot`. */
    queues,
    load: () => ({ running: total(), waiting: queues.call.size + queues.line.size }),
    take,
    release(of: SlotUser): void {
      running[of]--;
      // The slot is passed on directly, so that a new call does not overtake those that wait.
      for (const user of inOrder)
        for (const grant of queues[user]) {
          if (take(user)) grant();
          return;
        }
    },
  };
}

export type Slots = ReturnType<typeof createSlots>;

/** Takes the first free slot among the candidates, or waits for one. Rejects with the signal's reason. */
export async function takeFirstSlot<T extends { readonly upstream: { readonly slots: Slots } }>(
  candidates: readonly T[],
  user: SlotUser,
  signal: AbortSignal,
): Promise<T> {
  const free = candidates.find(({ upstream }) => upstream.slots.take(user));
  if (free) return free;
  return new Promise((resolve, reject) => {
    const grants = candidates.map((candidate) => ({
      queue: candidate.upstream.slots.queues[user],
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
