import { invalidValue } from "#errors";
import { scatter } from "#platform/collection";
import { type Accounts, type Page, type StoredHold, withOpenHolds } from "./accounts.ts";

/** As many accounts as the count of open holds looks at: those whose holds expire first. */
const maxAccounts = 20_000;
const maxMs = 10_000;

export type ListedHold = ReturnType<typeof toListed>;

interface Found {
  readonly account: string;
  readonly k: string;
  readonly v: StoredHold;
}

const toListed = ({ account, k, v }: Found) => ({
  /** Its place in the list. */
  id: `${v.heldAt.getTime()}/${account}/${k}`,
  /** The request's id, or the lease's. */
  hold: k,
  account,
  isLease: k.startsWith("lease:"),
  nanoUsd: v.amount,
  heldAt: v.heldAt,
  expiresAt: v.expiresAt,
});

/** All open holds and leases, oldest first, from the index of accounts that have any. */
export const createHoldList =
  ({ accounts }: { accounts: Accounts }) =>
  async ({ limit, after }: Page): Promise<ListedHold[]> => {
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
    const found = accounts.collection.aggregate<Found>(
      [
        { $match: withOpenHolds },
        { $limit: maxAccounts },
        { $project: { holds: { $objectToArray: "$holds" } } },
        { $unwind: "$holds" },
        { $project: { _id: 0, account: "$_id", k: "$holds.k", v: "$holds.v" } },
        ...(place ? [{ $match: newer }] : []),
        { $sort: { "v.heldAt": 1, account: 1, k: 1 } },
        { $limit: limit },
      ],
      { hint: { holdsExpireAt: 1 }, maxTimeMS: maxMs, ...scatter("operator") },
    );
    return (await found.toArray()).map(toListed);
  };
