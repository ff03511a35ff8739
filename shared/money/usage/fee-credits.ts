import type { Collection } from "mongoose";
import { ServiceError } from "#errors";
import { longRunning, scatter } from "#platform/mongo/collection";
import type { MoneyDeps } from "../deps.ts";
import type { createMovements } from "../movements.ts";
import { daysLater, monthOfDay } from "./dates.ts";
import type { DayState } from "./days.ts";
import { rowsBetween, type StoredUsageDay } from "./rows.ts";

const creditOf = (account: string, day: string): string => `byok:${account}:${day}`;

/** The days of the month before this one. */
function earlierDays(day: string): readonly string[] {
  const earlier: string[] = [];
  for (let each = `${monthOfDay(day)}-01`; each < day; each = daysLater(each, 1)) earlier.push(each);
  return earlier;
}

export interface FeeTerms {
  readonly feeBps: number;
  /** Nano-USD of a month's calls, at the list price, whose fees are credited back. */
  readonly allowanceNanoUsd: bigint;
}

/**
 * The amount that is credited back of the fees of calls with own provider keys (docs/adr/0039): those of a month's first calls, up to the
 * allowance. Rounded down. `list`: what the calls would have cost otherwise.
 */
export function creditableFees(list: bigint, fees: bigint, { feeBps, allowanceNanoUsd }: FeeTerms): bigint {
  const free = list < allowanceNanoUsd ? list : allowanceNanoUsd;
  const most = (free * BigInt(feeBps)) / 10_000n;
  return most < fees ? most : fees;
}

/**
 * Credits fees once for each account and day, from the sums of days that are final: the id of the entry names both. A credit is
 * what the month's days until then allow, less what was credited for the earlier ones, so nothing depends on how often, or in
 * how many processes, this runs.
 */
export function createFeeCredits(
  { ledger, log }: Pick<MoneyDeps, "ledger" | "log">,
  { record }: Pick<ReturnType<typeof createMovements>, "record">,
  collections: { readonly days: Collection<StoredUsageDay>; readonly states: Collection<DayState> },
) {
  const { days, states } = collections;
  const isDue = { closed: true, feesCredited: { $exists: false } } as const;

  async function accountsWithFees(day: string): Promise<string[]> {
    const rows = { ...rowsBetween("day", day, daysLater(day, 1)), byokFees: { $ne: 0n, $exists: true } };
    const found = days.aggregate<{ _id: string }>([{ $match: rows }, { $group: { _id: "$account" } }], {
      ...longRunning,
      ...scatter("usage days"),
    });
    return (await found.toArray()).map(({ _id }) => _id);
  }

  async function creditAccount(account: string, day: string, terms: FeeTerms): Promise<boolean> {
    const month = { account, day: { $gte: `${monthOfDay(day)}-01`, $lte: day } };
    const [sums] = await days
      .aggregate<{ list: bigint; fees: bigint }>([
        { $match: month },
        { $group: { _id: null, list: { $sum: "$byokList" }, fees: { $sum: "$byokFees" } } },
      ])
      .toArray();
    const earlier = await ledger.readCommitted(
      earlierDays(day).map((each) => ({ account, _id: creditOf(account, each) })),
    );
    const credited = [...earlier.values()].reduce((sum, { amount }) => sum + amount, 0n);
    const due = creditableFees(BigInt(sums?.list ?? 0), BigInt(sums?.fees ?? 0), terms) - credited;
    if (due <= 0n) return false;
    const { created } = await record({
      _id: creditOf(account, day),
      kind: "credit",
      account,
      amount: due,
      reason: `Fees of calls with your own provider keys until ${day}`,
    });
    return created;
  }

  /** Credits the fees of final days, in order. Resolves with the number of credits. */
  return async function creditFees(terms: FeeTerms, signal?: AbortSignal): Promise<number> {
    let credits = 0;
    while (!signal?.aborted) {
      const next = await states.findOne(isDue, { sort: { _id: 1 } });
      if (!next) break;
      for (const account of terms.allowanceNanoUsd > 0n ? await accountsWithFees(next._id) : []) {
        if (signal?.aborted) return credits;
        try {
          if (await creditAccount(account, next._id, terms)) credits += 1;
        } catch (error) {
          if (!(error instanceof ServiceError) || error.status !== 404) throw error;
          log.warn(
            { account, day: next._id },
            "fees could not be credited, because the account does not exist any more",
          );
        }
      }
      await states.updateOne({ _id: next._id }, { $set: { feesCredited: true } });
    }
    return credits;
  };
}
