interface Waiting<Item, Result> extends PromiseWithResolvers<Result> {
  readonly item: Item;
}

/** Receives the number of items and the duration of each write. */
export type ObserveWrite = (items: number, seconds: number) => void;

/** Collects further items of this turn of the event loop, which halves the number of writes with 200 callers. */
const endOfTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

interface Pending<Item, Result> {
  readonly waiting: Map<string, Waiting<Item, Result>>;
  /** True if waiting items must be written now, false if they may wait for others. */
  isDue: boolean;
  timer: NodeJS.Timeout | undefined;
  /** Number of writes in progress or about to begin. */
  writers: number;
  /** Number of items in the latest write. */
  items: number;
}

/** Pacing of writes that need not see each other, according to the amount to write. */
export interface Pacing {
  /** The number of items from which a write counts as large. */
  readonly many: number;
  /** After a large write, the next one starts at least this much later and carries more. */
  readonly spacingMs: number;
  /** While writes are small, this many may be in progress at once, so that an item waits only for its own write. */
  readonly writers: number;
}

/**
 * Groups the items that arrive for a key while a write for that key is in progress into its next write. Each key has at
 * most one write in progress, unless there is a `pacing`. Items are written in the order of arrival; waiting items with
 * equal ids are merged. An item with a `mayWaitMs` joins the next write of its key, and has its own only if there is none
 * within this time.
 *
 * `write` returns one result for each item, or an `Error` for a failed item. If it throws, the whole group fails.
 */
export function groupCommit<Item, Result>(options: {
  readonly limit: number;
  readonly pacing?: Pacing;
  readonly observe?: ObserveWrite | undefined;
  write(key: string, group: readonly Item[]): Promise<readonly (Result | Error)[]>;
}): (key: string, id: string, item: Item, mayWaitMs?: number) => Promise<Result> {
  const { many, spacingMs, writers } = options.pacing ?? { many: Number.POSITIVE_INFINITY, spacingMs: 0, writers: 1 };
  const pendingByKey = new Map<string, Pending<Item, Result>>();

  async function drain(key: string, pending: Pending<Item, Result>): Promise<void> {
    const { waiting } = pending;
    while (pending.isDue) {
      await endOfTurn();
      // Another writer has taken them.
      if (!pending.isDue) break;
      const ids = [...waiting.keys().take(options.limit)];
      const group = ids.map((id) => waiting.get(id) as Waiting<Item, Result>);
      for (const id of ids) waiting.delete(id);
      pending.isDue = waiting.size > 0;
      pending.items = group.length;
      const startedAt = performance.now();
      const spacing = group.length < many ? undefined : pause(spacingMs);
      try {
        const outcomes = await options.write(
          key,
          group.map(({ item }) => item),
        );
        for (const [index, { resolve, reject }] of group.entries()) {
          const outcome = outcomes[index] as Result | Error;
          if (outcome instanceof Error) reject(outcome);
          else resolve(outcome);
        }
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
      options.observe?.(group.length, (performance.now() - startedAt) / 1_000);
      await spacing;
    }
    pending.writers--;
    if (pending.writers === 0 && waiting.size === 0) {
      clearTimeout(pending.timer);
      pendingByKey.delete(key);
    }
  }

  function start(key: string, pending: Pending<Item, Result>): void {
    pending.isDue = true;
    if (pending.writers > 0 && (pending.writers >= writers || pending.items >= many)) return;
    pending.writers++;
    void drain(key, pending);
  }

  function startLater(key: string, pending: Pending<Item, Result>, waitMs: number): void {
    pending.timer ??= setTimeout(() => {
      pending.timer = undefined;
      if (pending.waiting.size > 0) start(key, pending);
    }, waitMs);
  }

  return (key, id, item, mayWaitMs) => {
    let pending = pendingByKey.get(key);
    if (!pending) {
      pending = { waiting: new Map(), isDue: false, timer: undefined, writers: 0, items: 0 };
      pendingByKey.set(key, pending);
    }
    const { waiting } = pending;
    const added = waiting.get(id) ?? { item, ...Promise.withResolvers<Result>() };
    waiting.set(id, added);
    if (mayWaitMs === undefined) start(key, pending);
    else startLater(key, pending, mayWaitMs);
    return added.promise;
  };
}
