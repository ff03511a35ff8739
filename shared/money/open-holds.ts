import { invalidValue } from "#errors";
import { type Page, scatter } from "#platform/mongo/collection";
import { type StoredHold, withOpenHolds } from "./accounts.ts";
import type { MoneyDeps } from "./deps.ts";
import { isLease } from "./leases/closing.ts";
import { findOverdue } from "./sweep.ts";

/** Bounds the cost of one count or page for any number of active accounts: the first to expire are read. */
const maxAccounts = 20_000;
const maxOverdue = 1_000;
const listMs = 10_000;

interface Counted {
  readonly _id: boolean;
  readonly open: number;
  readonly oldestAt: Date;
}

export type ListedHold = ReturnType<typeof toListed>;

interface Found {
  readonly account: string;
  readonly k: string;
  readonly v: StoredHold;
}

const toListed = ({ account, k, v }: Found) => ({
  /** Its position in the list. */
  id: `${v.heldAt.getTime()}/${account}/${k}`,
  /** The id of the request or the lease. */
  hold: k,
  account,
  isLease: isLease(k),
  nanoUsd: v.amount,
  heldAt: v.heldAt,
  expiresAt: v.expiresAt,
});

/** The holds of all accounts, read from the index of accounts that have any. */
export function createOpenHolds({ accounts, ledger, clock }: MoneyDeps) {
  const { collection } = accounts;
  const activeAccounts = [{ $match: withOpenHolds }, { $limit: maxAccounts }];
  const hint = { holdsExpireAt: 1 } as const;

  /** Counts holds that have expired although their call has no entry. */
  async function countUncaptured(): Promise<number> {
    const overdue = await findOverdue(accounts, new Date(clock.now()), maxOverdue).toArray();
    const calls = overdue
      .filter(({ requestId }) => !isLease(requestId))
      .map(({ account, requestId }) => ({ account, _id: requestId }));
    return calls.length === 0 ? 0 : calls.length - (await ledger.readCommitted(calls)).size;
  }

  async function openHolds() {
    const counts = collection.aggregate<Counted>(
      [
        ...activeAccounts,
        { $project: { _id: 0, holds: { $objectToArray: "$holds" } } },
        { $unwind: "$holds" },
        {
          $group: {
            _id: { $eq: [{ $substrCP: ["$holds.k", 0, 6] }, "lease:"] },
            open: { $sum: 1 },
            oldestAt: { $min: "$holds.v.heldAt" },
          },
        },
      ],
      { hint, ...scatter("metrics") },
    );
    const [found, undecided] = await Promise.all([counts.toArray(), countUncaptured()]);
    const of = (isOfLeases: boolean) => {
      const counted = found.find(({ _id }) => _id === isOfLeases);
      return { open: counted?.open ?? 0, oldestAt: counted?.oldestAt.getTime() };
    };
    return { holds: of(false), leases: of(true), undecided };
  }

  /** Lists holds and leases, oldest first. */
  async function listHolds({ limit, after }: Page): Promise<ListedHold[]> {
    const place = after === undefined ? undefined : /^(\d{1,15})\/([^/]+)\/(.+)$/.exec(after);
    if (place === null) throw invalidValue("after", "after is not the `next` of a page.");
    const [, ms, account, k] = place ?? [];
    const heldAt = new Date(Number(ms));
    const newer = {
      $or: [
        { "v.heldAt": { $gt: heldAt } },
        { "v.heldAt": heldAt, account: { $gt: account } },
        { "v.heldAt": heldAt, account, k: { $gt: k } },
      ],
    };
    const found = collection.aggregate<Found>(
      [
        ...activeAccounts,
        { $project: { holds: { $objectToArray: "$holds" } } },
        { $unwind: "$holds" },
        { $project: { _id: 0, account: "$_id", k: "$holds.k", v: "$holds.v" } },
        ...(place ? [{ $match: newer }] : []),
        { $sort: { "v.heldAt": 1, account: 1, k: 1 } },
        { $limit: limit },
      ],
      { hint, maxTimeMS: listMs, ...scatter("operator") },
    );
    return (await found.toArray()).map(toListed);
  }

  return { openHolds, listHolds };
}
