import { dayMs } from "#platform/clock";
import type { MoneyDeps } from "./deps.ts";
import { type EntryKind, type StoredEntry, toEntry } from "./ledger.ts";
import { dayOf, daysLater, startOf } from "./usage/dates.ts";
import type { UsageQuery, UsageRow } from "./usage/views.ts";

const movementKinds = ["credit", "adjustment", "payout"] as const satisfies readonly EntryKind[];
/** All entries but those of calls and uploads. They are few, and never archived. */
export const movements = { kind: { $in: [...movementKinds, "refund"] } };
export const movementIndex = { account: 1, createdAt: 1 } as const;

export interface StatementLine {
  /** In UTC. */
  readonly day: string;
  /** An entry of the ledger, or the sum of a day. */
  readonly kind: (typeof movementKinds)[number] | "refunds" | "charges";
  readonly amountNanoUsd: bigint;
  /** The balance after this line. */
  readonly balanceNanoUsd: bigint;
  /** Of a sum: the calls and uploads that it is of. */
  readonly calls?: number | undefined;
  /** Of an entry: its id. */
  readonly id?: string | undefined;
  readonly createdAt?: Date | undefined;
  readonly reason?: string | undefined;
  readonly transaction?: string | undefined;
}

export interface Statement {
  readonly openingNanoUsd: bigint;
  readonly closingNanoUsd: bigint;
  /** By day: credits and what was taken back or paid out, one by one, then the day's refunds, then its charges. */
  readonly lines: readonly StatementLine[];
  /** There are more credits than were asked for, and the lines lack some. */
  readonly isCut: boolean;
}

interface Period {
  /** Days in UTC, both inclusive. */
  readonly from: string;
  readonly to: string;
  /** Bounds the credits that are listed. */
  readonly limit: number;
}

const firstDay = "1970-01-01";
/** More than a period has. */
const maxDays = 10_000;

/**
 * Statements of balances. Charges come from the usage by day, which does not need the entries of calls: these may be in the
 * archive. The usage of a day is less its refunds, so these are added to get what was charged.
 */
export const createStatements =
  (
    { ledger: { collection } }: MoneyDeps,
    usage: (account: string, query: UsageQuery) => Promise<readonly UsageRow[]>,
  ) =>
  async (account: string, { from, to, limit }: Period): Promise<Statement> => {
    const begin = new Date(startOf(from));
    const end = new Date(startOf(to) + dayMs);
    const hint = movementIndex;

    const ofAccount = { account, kind: { $in: [...movementKinds] } };
    const inPeriod = { $gte: begin, $lt: end };

    async function openingBalance(): Promise<bigint> {
      const sum = { $group: { _id: null, amount: { $sum: "$amount" } } };
      const before = { $match: { ...ofAccount, createdAt: { $lt: begin } } };
      const [found] = await collection.aggregate<{ amount: bigint }>([before, sum], { hint }).toArray();
      const earlier = { from: firstDay, to: daysLater(from, -1), groupBy: [], limit: 1 };
      const [cost] = await usage(account, earlier);
      return BigInt(found?.amount ?? 0) - (cost?.costNanoUsd ?? 0n);
    }

    /** Read after the usage, so that it has each refund that the usage has. */
    function refundsByDay() {
      const ofDay = { $dateToString: { date: "$createdAt", format: "%Y-%m-%d" } };
      const sums = { $group: { _id: ofDay, amount: { $sum: "$amount" }, calls: { $sum: 1 } } };
      const refunds = { $match: { account, kind: "refund", createdAt: inPeriod } };
      return collection.aggregate<{ _id: string; amount: bigint; calls: number }>([refunds, sums], { hint }).toArray();
    }

    const [opening, found, charges] = await Promise.all([
      openingBalance(),
      collection
        .find({ ...ofAccount, createdAt: inPeriod }, { hint, sort: { createdAt: 1 }, limit: limit + 1 })
        .toArray(),
      usage(account, { from, to, groupBy: ["day"], limit: maxDays }),
    ]);
    const refunds = await refundsByDay();

    const refunded = new Map(refunds.map(({ _id, amount, calls }) => [_id, { amount: BigInt(amount), calls }]));
    const costs = new Map(charges.map((row) => [row.day ?? "", row]));
    const movementsOfDays = Map.groupBy(found.slice(0, limit), ({ createdAt }) => dayOf(createdAt));
    const days = new Set([...refunded.keys(), ...costs.keys(), ...movementsOfDays.keys()]);
    let balance = opening;
    const lines: StatementLine[] = [];
    const add = (line: Omit<StatementLine, "balanceNanoUsd">) => {
      balance += line.amountNanoUsd;
      lines.push({ ...line, balanceNanoUsd: balance });
    };
    for (const day of [...days].toSorted()) {
      for (const entry of movementsOfDays.get(day) ?? []) add({ day, ...movementOf(entry) });
      const refund = refunded.get(day);
      if (refund) add({ day, kind: "refunds", amountNanoUsd: refund.amount, calls: refund.calls });
      const { costNanoUsd = 0n, calls = 0 } = costs.get(day) ?? {};
      const charged = costNanoUsd + (refund?.amount ?? 0n);
      if (charged > 0n) add({ day, kind: "charges", amountNanoUsd: -charged, calls });
    }
    return { openingNanoUsd: opening, closingNanoUsd: balance, lines, isCut: found.length > limit };
  };

function movementOf(stored: StoredEntry) {
  const { id, kind, amountNanoUsd, createdAt, reason, transaction } = toEntry(stored);
  return { id, kind: kind as StatementLine["kind"], amountNanoUsd, createdAt, reason, transaction };
}
