import type { ClientSession } from "mongoose";
import type { MoneyDeps } from "../deps.ts";
import { keyIndex, refundPrefix } from "../ledger.ts";
import type { UsageHours } from "./hours.ts";
import type { KeyTotals } from "./key-totals.ts";

/** The charges of keys minus refunds, and their open calls that have their own holds. */
export interface KeyCharges {
  readonly spentNanoUsd: bigint;
  readonly open: readonly { readonly id: string; readonly nanoUsd: bigint }[];
}

/** A part of the charges, at a time within its day. */
interface Charge {
  readonly key: string | null | undefined;
  readonly at: Date;
  readonly nanoUsd: bigint;
}

const refundIndex = { createdAt: 1, account: 1 } as const;
/** The query also ends on the server, so that retried counts do not pile up. */
const maxTimeMS = 3_000;
const refundedId = (refund: string) => refund.slice(refundPrefix.length);

export function createKeyUsage(deps: MoneyDeps & { totals: KeyTotals; hours: UsageHours }) {
  const { mongo, accounts, ledger, totals, hours } = deps;

  /** Refunds have no key of their own, so it is taken from the call. They count on their own day. */
  async function refundsSince(account: string, since: Date, session: ClientSession): Promise<Charge[]> {
    const filter = { account, kind: "refund", createdAt: { $gte: since } } as const;
    const projection = { amount: 1, createdAt: 1 } as const;
    const found = ledger.collection.find(filter, { projection, hint: refundIndex, session, maxTimeMS });
    const refunds = new Map((await found.toArray()).map((refund) => [refundedId(refund._id), refund]));
    const ids = [...refunds.keys()].map((_id) => ({ _id, account }));
    const calls = await ledger.readIn(ids, session).toArray();
    return calls.flatMap(({ _id, request }) => {
      const { amount, createdAt } = refunds.get(_id) ?? {};
      return amount === undefined || !createdAt ? [] : [{ key: request?.key, at: createdAt, nanoUsd: -amount }];
    });
  }

  async function entriesSince(account: string, keys: readonly string[], since: Date, session: ClientSession) {
    const day = { $dateTrunc: { date: "$createdAt", unit: "day" } };
    const cursor = ledger.collection.aggregate<{ _id: { key: string; day: Date }; amount: bigint }>(
      [
        { $match: { account, "request.key": { $in: keys }, createdAt: { $gte: since } } },
        { $group: { _id: { key: "$request.key", day }, amount: { $sum: "$amount" } } },
      ],
      { hint: keyIndex, session, maxTimeMS },
    );
    return (await cursor.toArray()).map(({ _id, amount }): Charge => ({ key: _id.key, at: _id.day, nanoUsd: -amount }));
  }

  /** Adds the closed days, the hours since then, and the ledger entries since the last run that summed hours. */
  async function spentSince(account: string, keys: readonly string[], since: Date, session: ClientSession) {
    const closed = await totals.closedSince(account, keys, since);
    const settled = await hours.settledSince(account, closed.until, session);
    const { until } = settled;
    const entries = await entriesSince(account, keys, until, session);
    const refunds = await refundsSince(account, until, session);
    const isNew = ({ key, at }: Charge) => at.getTime() >= (closed.until.get(key ?? "") ?? Number.POSITIVE_INFINITY);
    const after = [...entries, ...refunds].filter(isNew).reduce((sum, { nanoUsd }) => sum + nanoUsd, 0n);
    return closed.nanoUsd + settled.nanoUsd + after;
  }

  async function costsOf(account: string, ids: readonly string[]): Promise<Map<string, bigint>> {
    if (ids.length === 0) return new Map();
    const entries = await ledger.readCommitted(ids.map((_id) => ({ _id, account })));
    return new Map([...entries].map(([id, { amount }]) => [id, -amount]));
  }

  return {
    costsOf,

    /** Reads one snapshot: a captured call is in the sum and not open, any other is open and not in the sum. */
    chargesOfKeys: (account: string, keys: readonly string[], since: Date): Promise<KeyCharges> =>
      mongo.inSnapshot(async (session) => {
        const projection = { holds: 1 } as const;
        const found = await accounts.collection.findOne({ _id: account }, { projection, session });
        const isOfKeys = new Set<string | null | undefined>(keys);
        const holds = Object.entries(found?.holds ?? {}).filter(([, hold]) => isOfKeys.has(hold.key));
        const ids = holds.map(([_id]) => ({ _id, account }));
        const captured = await ledger.readIn(ids, session).toArray();
        const isCaptured = new Set(captured.map(({ _id }) => _id));
        const spentNanoUsd = await spentSince(account, keys, since, session);
        const open = holds.filter(([id]) => !isCaptured.has(id)).map(([id, { amount }]) => ({ id, nanoUsd: amount }));
        return { spentNanoUsd, open };
      }),
  };
}
