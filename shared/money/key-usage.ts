import type { ClientSession } from "mongoose";
import { answered, type Mongo } from "#platform/mongo";
import type { Accounts } from "./accounts.ts";
import type { KeyTotals } from "./key-totals.ts";
import { keyIndex, type Ledger, refundPrefix } from "./ledger.ts";
import type { UsageHours } from "./usage-hours.ts";

/** What a key was charged, refunds subtracted, and its calls that have holds of their own and are not decided. */
export interface KeyCharges {
  readonly spentNanoUsd: bigint;
  readonly open: readonly { readonly id: string; readonly nanoUsd: bigint }[];
}

const refundIndex = { createdAt: 1, account: 1 } as const;
/** Ends in the server as well, so that counts that are tried again do not pile up. */
const maxTimeMS = 3_000;
const refundedId = (refund: string) => refund.slice(refundPrefix.length);

export function createKeyUsage(deps: {
  mongo: Mongo;
  accounts: Accounts;
  ledger: Ledger;
  totals: KeyTotals;
  hours: UsageHours;
}) {
  const { mongo, accounts, ledger, totals, hours } = deps;

  /** Refunds name no key, but their call. They count on their own day, as in the days that stand. */
  async function refundedSince(account: string, key: string, since: Date, session: ClientSession): Promise<bigint> {
    const filter = { account, kind: "refund", createdAt: { $gte: since } } as const;
    const found = ledger.collection.find(filter, { projection: { amount: 1 }, hint: refundIndex, session, maxTimeMS });
    const amounts = new Map((await answered(found.toArray())).map(({ _id, amount }) => [refundedId(_id), amount]));
    const ids = [...amounts.keys()].map((_id) => ({ _id, account }));
    const calls = await answered(ledger.readIn(ids, session).toArray());
    return calls
      .filter(({ request }) => request?.key === key)
      .reduce((sum, { _id }) => sum + (amounts.get(_id) ?? 0n), 0n);
  }

  /** By the days that stand, the hours since then, and the ledger since the last run that made them. */
  async function spentSince(account: string, key: string, since: Date, session: ClientSession): Promise<bigint> {
    const closed = await totals.closedSince(account, key, since);
    const settled = await hours.settledSince(account, key, closed.until, session);
    const { until } = settled;
    const cursor = ledger.collection.aggregate<{ amount: bigint }>(
      [
        { $match: { account, "request.key": key, createdAt: { $gte: until } } },
        { $group: { _id: null, amount: { $sum: "$amount" } } },
      ],
      { hint: keyIndex, session, maxTimeMS },
    );
    const [found] = await answered(cursor.toArray());
    return (
      closed.nanoUsd + settled.nanoUsd - (found?.amount ?? 0n) - (await refundedSince(account, key, until, session))
    );
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
        const spentNanoUsd = await spentSince(account, key, since, session);
        const open = holds.filter(([id]) => !isDecided.has(id)).map(([id, { amount }]) => ({ id, nanoUsd: amount }));
        return { spentNanoUsd, open };
      }),
  };
}
