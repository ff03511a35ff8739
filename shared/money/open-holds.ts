import type { Clock } from "#platform/clock";
import { scatter } from "#platform/collection";
import { type Accounts, withOpenHolds } from "./accounts.ts";
import { isLease } from "./leases/closing.ts";
import type { Ledger } from "./ledger.ts";
import { findOverdue } from "./sweep.ts";

/** Bounds of one count, so that it costs little however many accounts are active. */
const maxAccounts = 20_000;
const maxOverdue = 1_000;

interface Counted {
  readonly _id: boolean;
  readonly open: number;
  readonly oldestAt: Date;
}

/** The holds of all accounts, read from the index of accounts that have any: those first that expire first. */
export function createOpenHolds({ accounts, ledger, clock }: { accounts: Accounts; ledger: Ledger; clock: Clock }) {
  /** Holds that have expired without an entry of their call. */
  async function countUndecided(): Promise<number> {
    const overdue = await findOverdue(accounts, new Date(clock.now()), maxOverdue).toArray();
    const calls = overdue
      .filter(({ requestId }) => !isLease(requestId))
      .map(({ account, requestId }) => ({ account, _id: requestId }));
    return calls.length === 0 ? 0 : calls.length - (await ledger.readCommitted(calls)).size;
  }

  return async function openHolds() {
    const counts = accounts.collection.aggregate<Counted>(
      [
        { $match: withOpenHolds },
        { $limit: maxAccounts },
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
      { hint: { holdsExpireAt: 1 }, ...scatter("metrics") },
    );
    const [found, undecided] = await Promise.all([counts.toArray(), countUndecided()]);
    const of = (isOfLeases: boolean) => {
      const counted = found.find(({ _id }) => _id === isOfLeases);
      return { open: counted?.open ?? 0, oldestAt: counted?.oldestAt.getTime() };
    };
    return { holds: of(false), leases: of(true), undecided };
  };
}
