import type { Clock } from "#platform/clock";
import { answered } from "#platform/mongo";
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

export function createKeyUsage({ ledger, clock }: { ledger: Ledger; clock: Clock }) {
  /** Sums of entries that no failover can roll back, since each of these times (unix milliseconds). */
  async function sumsSince(account: string, key: string, times: readonly number[]): Promise<bigint[]> {
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
      { hint: keyIndex, readConcern: { level: "majority" } },
    );
    const [found] = await answered(cursor.toArray());
    return times.map((_, at) => -(found?.[`sum${at}`] ?? 0n));
  }

  return {
    async usageOfKey(account: string, key: string): Promise<KeyUsage> {
      const now = new Date(clock.now());
      const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()];
      const times = [Date.UTC(year, month, day), Date.UTC(year, month), 0];
      const [dayNanoUsd = 0n, monthNanoUsd = 0n, totalNanoUsd = 0n] = await sumsSince(account, key, times);
      return { dayNanoUsd, monthNanoUsd, totalNanoUsd };
    },
  };
}
