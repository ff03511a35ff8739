import { groupCommit } from "#platform/concurrency/group-commit";
import { retry } from "#platform/concurrency/retry";
import { unlessAborted } from "#platform/concurrency/unless-aborted";
import type { Capture } from "./capture.ts";
import type { MoneyDeps } from "./deps.ts";
import { assertRequestId } from "./ledger.ts";
import { assertAmount } from "./usd.ts";

/** The cost is that of the entry that counts. */
export type Settlement = Pick<Capture, "account" | "requestId" | "heldNanoUsd" | "costNanoUsd" | "signal">;

const groupLimit = 500;
const backoff = { firstMs: 20, maxMs: 1_000 };

/** Settles captured costs. Each write ends one hold on its account, at most once because of its filter. */
export function createSettle(deps: MoneyDeps) {
  const { accounts, observer, clock, log } = deps;
  /** Settles all of them or none. */
  async function write(account: string, group: readonly Settlement[]): Promise<boolean> {
    const open: Record<`holds.${string}.amount`, bigint> = {};
    const ended: Record<`holds.${string}`, ""> = {};
    let heldNanoUsd = 0n;
    let costNanoUsd = 0n;
    for (const each of group) {
      open[`holds.${each.requestId}.amount`] = each.heldNanoUsd;
      ended[`holds.${each.requestId}`] = "";
      heldNanoUsd += each.heldNanoUsd;
      costNanoUsd += each.costNanoUsd;
    }
    const balance = { held: -heldNanoUsd, available: heldNanoUsd - costNanoUsd, openHolds: -group.length };
    const update = accounts.collection.updateOne({ _id: account, ...open }, { $inc: balance, $unset: ended });
    return (await update).matchedCount === 1;
  }

  async function writeGroup(account: string, group: readonly Settlement[]): Promise<(boolean | Error)[]> {
    try {
      if (await write(account, group)) return group.map(() => true);
    } catch (error) {
      log.warn({ err: error, account, settlements: group.length }, "costs could not be settled; retrying");
      throw error;
    }
    if (group.length === 1) return [false];
    // Another process settled one of them, so each is tried alone.
    const outcomes: (boolean | Error)[] = [];
    for (const each of group) outcomes.push(await write(account, [each]).catch((error: Error) => error));
    return outcomes;
  }

  const commit = groupCommit<Settlement, boolean>({
    limit: groupLimit,
    observe: observer?.writes.applications,
    write: writeGroup,
  });

  function assertValid({ requestId, heldNanoUsd, costNanoUsd }: Settlement): void {
    assertRequestId(requestId);
    assertAmount(heldNanoUsd, "heldNanoUsd");
    assertAmount(costNanoUsd, "costNanoUsd");
    if (costNanoUsd > heldNanoUsd) throw new RangeError(`${requestId} cost more than was held`);
  }

  /** Retries until the cost is settled. A missing hold was ended before. */
  async function settle(settlement: Settlement): Promise<void> {
    assertValid(settlement);
    const { account, requestId, signal } = settlement;
    const commitOnce = () => commit(account, requestId, settlement);
    await retry({ clock, signal, backoff }, () => unlessAborted(signal, commitOnce));
  }

  /** Does not retry. Returns true if this call ended the hold. */
  async function settleOnce(settlement: Settlement): Promise<boolean> {
    assertValid(settlement);
    return commit(settlement.account, settlement.requestId, settlement);
  }

  return { settle, settleOnce };
}
