interface Waiting<Item, Result> {
  readonly item: Item;
  readonly promise: Promise<Result>;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** The rest of this turn of the event loop may bring more: half the writes, measured with 200 callers. */
const endOfTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

/**
 * What arrives for a key while a write for it is under way goes into the next write together. One write is under way
 * in a key; pending know nothing of each other. First come, first served; equal ids that wait together are one item.
 *
 * `write` gives one outcome for each item, an `Error` for one that failed. If it throws, the whole group fails.
 */
export function groupCommit<Item, Result>(options: {
  /** Most items in one write. */
  readonly limit: number;
  write(key: string, group: readonly Item[]): Promise<readonly (Result | Error)[]>;
}): (key: string, id: string, item: Item) => Promise<Result> {
  const pending = new Map<string, Map<string, Waiting<Item, Result>>>();

  async function drain(key: string, waiting: Map<string, Waiting<Item, Result>>): Promise<void> {
    while (waiting.size > 0) {
      await endOfTurn();
      const ids = [...waiting.keys().take(options.limit)];
      const group = ids.map((id) => waiting.get(id) as Waiting<Item, Result>);
      for (const id of ids) waiting.delete(id);
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
    }
    pending.delete(key);
  }

  return (key, id, item) => {
    const gathering = pending.get(key);
    const waiting = gathering ?? new Map<string, Waiting<Item, Result>>();
    const standing = waiting.get(id);
    if (standing) return standing.promise;
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    waiting.set(id, { item, promise, resolve, reject });
    if (!gathering) {
      pending.set(key, waiting);
      void drain(key, waiting);
    }
    return promise;
  };
}
