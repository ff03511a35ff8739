import type { mongo as driver } from "mongoose";
import type { Clock } from "#platform/clock";
import { answered, type Mongo } from "#platform/mongo";
import type { Accounts } from "./accounts.ts";
import type { Ledger } from "./ledger.ts";

/** What the calls of a key were charged: on this day, in this month, ever. Days and months are UTC. */
export interface KeyUsage {
  readonly dayNanoUsd: bigint;
  readonly monthNanoUsd: bigint;
  readonly totalNanoUsd: bigint;
}

/** Has the amounts, so that sums read no entry. */
export const keyIndex = { account: 1, "request.key": 1, createdAt: 1, amount: 1 } as const;
/** Of entries that are calls or uploads by a key. */
export const ofKeys = { "request.key": { $exists: true } };

/** What a key was charged, and its calls that have holds of their own and are not decided. */
export interface KeyCharges {
  readonly spentNanoUsd: bigint;
  readonly open: readonly { readonly id: string; readonly nanoUsd: bigint }[];
}

export function createKeyUsage(deps: { mongo: Mongo; accounts: Accounts; ledger: Ledger; clock: Clock }) {
  const { mongo, accounts, ledger, clock } = deps;

  /** Sums of entries that no failover can roll back, since each of these times (unix milliseconds). */
  async function sumsSince(
    account: string,
    key: string,
    times: readonly number[],
    options: driver.AggregateOptions = { readConcern: { level: "majority" } },
  ): Promise<bigint[]> {
    const first = Math.min(...times);
    const sums = times.map((since, at) => [
      `sum${at}`,
      { $sum: { $cond: [{ $gte: ["$createdAt", new Date(since)] }, "$amount", 0n] } },
    ]);
    const cursor = ledger.collection.aggregate<Record<string, bigint>>(
      [
        { $match: { account, "request.key": key, createdAt: { $gte: new Date(first) } } },
        { $group: { _id: null, ...Object.fromEntries(sums) } },
      ],
      { hint: keyIndex, ...options },
    );
    const [found] = await answered(cursor.toArray());
    return times.map((_, at) => -(found?.[`sum${at}`] ?? 0n));
  }

  /** The costs of those that are decided. */
  async function costsOf(account: string, ids: readonly string[]): Promise<Map<string, bigint>> {
    if (ids.length === 0) return new Map();
    const entries = await ledger.readCommitted(ids.map((_id) => ({ _id, account })));
    return new Map([...entries].map(([id, { amount }]) => [id, -amount]));
  }

  return {
    costsOf,

    /** Of one moment: a call that is decided is in the sum and not open, any other the reverse. */
    chargesOfKey: (account: string, key: string, since: Date): Promise<KeyCharges> =>
      mongo.connection.getClient().withSession({ snapshot: true }, async (session) => {
        const projection = { holds: 1 } as const;
        const found = await answered(accounts.collection.findOne({ _id: account }, { projection, session }));
        const holds = Object.entries(found?.holds ?? {}).filter(([, hold]) => hold.key === key);
        const ids = holds.map(([_id]) => ({ _id, account }));
        const decided = await answered(ledger.readIn(ids, session).toArray());
        const isDecided = new Set(decided.map(({ _id }) => _id));
        const [spentNanoUsd = 0n] = await sumsSince(account, key, [since.getTime()], { session });
        const open = holds.filter(([id]) => !isDecided.has(id)).map(([id, { amount }]) => ({ id, nanoUsd: amount }));
        return { spentNanoUsd, open };
      }),

    async usageOfKey(account: string, key: string): Promise<KeyUsage> {
      const now = new Date(clock.now());
      const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()];
      const times = [Date.UTC(year, month, day), Date.UTC(year, month), 0];
      const [dayNanoUsd = 0n, monthNanoUsd = 0n, totalNanoUsd = 0n] = await sumsSince(account, key, times);
      return { dayNanoUsd, monthNanoUsd, totalNanoUsd };
    },
  };
}
