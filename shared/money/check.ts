import type { ClientSession } from "mongoose";
import { longRunning, scatter } from "#platform/mongo/collection";
import type { AccountSums, Range, Sums } from "./account-sums.ts";
import type { StoredAccount } from "./accounts.ts";
import type { Checkpoints } from "./checkpoints.ts";
import type { MoneyDeps } from "./deps.ts";
import { isLease } from "./leases/closing.ts";
import { pendingCosts } from "./pending-costs.ts";

/** Limits on what is read from one snapshot, which MongoDB retains for five minutes. */
const pageAccounts = 1_000;
const pageEntries = 100_000;

/**
 * Checks for every account that the sum of its entries equals available + held once captured holds are settled, that
 * `held` and `openHolds` agree with the holds, and that nothing is negative. Each page of accounts is read from one
 * snapshot. The sum consists of the account's checkpoint and the entries since; a full check reads every entry again,
 * adds the sums of archived entries, and compares the checkpoints with them (docs/adr/0003).
 */
export function createCheck(deps: MoneyDeps & { checkpoints: Checkpoints; archivedSums: AccountSums }) {
  const { mongo, accounts, ledger, checkpoints, archivedSums, clock, log } = deps;

  /** Checks at most `maxPages` pages. `next` is the start of the following run, undefined at the end. */
  async function check({
    full = false,
    after: from = "",
    maxPages = Number.POSITIVE_INFINITY,
  }: {
    full?: boolean;
    after?: string;
    maxPages?: number;
  } = {}) {
    const now = clock.now();
    const totals = {
      accounts: 0,
      /** The sum of all accounts' absolute differences between ledger and balance. */
      differenceNanoUsd: 0n,
      openHolds: 0,
      /** Holds that have expired and that the sweeper has not ended yet. */
      overdueHolds: 0,
      /** Open holds without an entry, excluding leases: of running calls, or for the sweeper to end. */
      undecided: 0,
    };
    let oldestHeldAt = now;
    let faults = 0;

    /** Returns the last account whose entries are read from this snapshot, or undefined if the page is unbounded. */
    async function endOfPage(range: Range, session: ClientSession): Promise<string | undefined> {
      const ends = [await checkpoints.accountAfter(pageEntries, range, full, session), range.$lte];
      if (full) ends.push(await archivedSums.accountAfter(pageEntries, range, session));
      return ends.filter((end) => end !== undefined).toSorted()[0];
    }

    /** Returns the last account of the page, or undefined after the last page. */
    async function comparePage(after: string, session: ClientSession): Promise<string | undefined> {
      const options = { session, sort: { _id: 1 }, limit: pageAccounts, ...longRunning, ...scatter("check") } as const;
      const found = await accounts.collection.find({ _id: { $gt: after } }, options).toArray();
      const last = found.length === pageAccounts ? found.at(-1)?._id : undefined;
      const upTo = await endOfPage(rangeOf(after, last), session);
      const range = rangeOf(after, upTo);
      const inRange = found.filter(({ _id }) => upTo === undefined || _id <= upTo);

      const sums = await checkpoints.sumCheckpoints(range, session);
      const entries = full ? await checkpoints.sumEveryEntry(range, session) : sums;
      if (full) {
        await archivedSums.addTo(entries, range, session);
        compareCheckpoints(sums, entries);
      }
      const costs = await pendingCosts(ledger, inRange, session);
      for (const account of inRange) {
        compareOne(account, entries.get(account._id) ?? 0n, costs);
        entries.delete(account._id);
      }
      // The entries of a removed payment account add up to zero, which is not in the map.
      for (const [account, amountNanoUsd] of entries) report(account, amountNanoUsd, { missing: true });
      return upTo;
    }

    function compareOne(account: StoredAccount, ledgerNanoUsd: bigint, costs: ReadonlyMap<string, bigint>): void {
      const { _id, available, held, openHolds } = account;
      const holds = Object.entries(account.holds);
      let pendingNanoUsd = 0n;
      let mapNanoUsd = 0n;
      for (const [id, hold] of holds) {
        const cost = costs.get(id);
        if (cost !== undefined) pendingNanoUsd += cost;
        else if (!isLease(id)) totals.undecided += 1;
        mapNanoUsd += hold.amount;
        if ((hold.callsEndAt ?? hold.expiresAt).getTime() < now) totals.overdueHolds += 1;
        oldestHeldAt = Math.min(oldestHeldAt, hold.heldAt.getTime());
      }
      totals.accounts += 1;
      totals.openHolds += holds.length;
      const differenceNanoUsd = ledgerNanoUsd - (available + held - pendingNanoUsd);
      const isConsistent = held === mapNanoUsd && openHolds === holds.length && available >= 0n;
      if (isConsistent && differenceNanoUsd === 0n) return;
      report(_id, differenceNanoUsd, { availableNanoUsd: available, heldNanoUsd: held, mapNanoUsd, openHolds });
    }

    function compareCheckpoints(sums: Sums, entries: Sums): void {
      for (const account of new Set([...sums.keys(), ...entries.keys()])) {
        const [checkpointNanoUsd, entriesNanoUsd] = [sums.get(account) ?? 0n, entries.get(account) ?? 0n];
        if (checkpointNanoUsd === entriesNanoUsd) continue;
        faults += 1;
        log.error({ account, checkpointNanoUsd, entriesNanoUsd }, "a checkpoint does not match the ledger");
      }
    }

    function report(account: string, differenceNanoUsd: bigint, found: object): void {
      faults += 1;
      totals.differenceNanoUsd += differenceNanoUsd < 0n ? -differenceNanoUsd : differenceNanoUsd;
      log.error({ account, differenceNanoUsd, ...found }, "a balance does not match the ledger");
    }

    const compareFrom = (after: string) => mongo.inSnapshot((session) => comparePage(after, session));
    let next: string | undefined = from;
    for (let pages = 0; next !== undefined && pages < maxPages; pages++) next = await compareFrom(next);
    const oldestOpenHoldSeconds = Math.round((now - oldestHeldAt) / 1_000);
    return { ok: faults === 0, faults, next, ...totals, oldestOpenHoldSeconds };
  }

  return check;
}

const rangeOf = (after: string, upTo: string | undefined): Range => ({
  $gt: after,
  ...(upTo !== undefined && { $lte: upTo }),
});
