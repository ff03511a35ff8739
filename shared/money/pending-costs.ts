import type { ClientSession } from "mongoose";
import type { StoredAccount } from "./accounts.ts";
import { isLease } from "./leases/closing.ts";
import { type Ledger, toEntry } from "./ledger.ts";

const pageHolds = 5_000;

/** Returns captured costs that are not settled yet, by the id of the hold or lease. */
export async function pendingCosts(
  ledger: Ledger,
  accounts: readonly Pick<StoredAccount, "_id" | "holds">[],
  session?: ClientSession,
): Promise<Map<string, bigint>> {
  const keys = accounts.flatMap(({ _id: account, holds }) => Object.keys(holds).map((_id) => ({ account, _id })));
  const calls = keys.filter(({ _id }) => !isLease(_id));
  const leases = keys.filter(({ _id }) => isLease(_id));
  const costs = new Map<string, bigint>();
  for (let from = 0; from < calls.length; from += pageHolds) {
    for await (const entry of ledger.readIn(calls.slice(from, from + pageHolds), session))
      costs.set(entry._id, toEntry(entry).costNanoUsd);
  }
  for (let from = 0; from < leases.length; from += pageHolds)
    for (const [lease, cost] of await ledger.sumLeases(leases.slice(from, from + pageHolds), session))
      costs.set(lease, cost);
  return costs;
}
