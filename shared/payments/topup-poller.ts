import type { Signature } from "@solana/kit";
import { type Money, unitNanoUsd } from "#money";
import { dayMs } from "#platform/clock";
import type { Uses } from "#platform/uses";
import type { TopupChain } from "./topup-chain.ts";
import type { StoredTopup, Topup, Topups } from "./topups.ts";

/** Transactions read in one poll. Anyone may add some with a reference, for the network's fee. */
const pageSize = 100;
const pollsPerRun = 50;
/** After this many failures the network is probably unavailable, and the next run retries. */
const maxFailures = 3;
/** We still poll for a top-up this long after its expiry. */
const lateMs = 7 * dayMs;
const minIntervalMs = 4_000;
/** The interval grows with the age: we poll for a top-up every two minutes once it is an hour old. */
const intervalsOfAge = 30;

/** Called for each credited payment; again if it fails, or if the process dies before the poll ends. */
export type OnCredited = (account: string, topup: Topup) => Promise<void>;

/** Credits payments that arrived for top-ups. Safe in any number of concurrent processes. */
export function createTopupPoller(
  deps: Uses<"clock" | "log"> & { topups: Topups; chain: TopupChain; money: Pick<Money, "creditReceipt"> },
) {
  const { topups, chain, money, clock, log } = deps;

  const intervalMs = ({ createdAt }: StoredTopup) =>
    Math.max(minIntervalMs, Math.floor((clock.now() - createdAt.getTime()) / intervalsOfAge));

  /**
   * The claim assigns the transaction to this top-up, then the ledger counts it once. A crash in between is repaired by
   * the next poll, which begins at the same page.
   */
  async function creditFrom(topup: StoredTopup, signature: Signature, onCredited: OnCredited): Promise<boolean> {
    const units = await chain.unitsIn(signature, topup);
    const nanoUsd = units > 0n ? await topups.claim(topup, signature, units * unitNanoUsd) : undefined;
    if (nanoUsd === undefined) return false;
    const { created } = await money.creditReceipt(topup.account, { nanoUsd, transaction: signature });
    await topups.showCredited(topup, signature);
    const credited = await topups.find(topup.account, topup._id);
    if (credited) await onCredited(topup.account, credited);
    return created;
  }

  /** Reads one page. A transaction that cannot be read does not hinder the others, but the page is read again. */
  async function poll(topup: StoredTopup, counts: { credited: number }, onCredited: OnCredited): Promise<void> {
    const isLast = clock.now() >= topup.expiresAt.getTime() + lateMs;
    const { signatures, isComplete, next } = await chain.nextPage(topup, topup.progress ?? {}, pageSize);
    const failures: unknown[] = [];
    for (const signature of signatures)
      try {
        if (await creditFrom(topup, signature, onCredited)) counts.credited += 1;
      } catch (error) {
        failures.push(error);
      }
    if (failures.length > 0) throw failures[0];
    const nextMs = isComplete ? intervalMs(topup) : 0;
    await topups.endPoll(topup, { progress: next, ...(!(isComplete && isLast) && { nextMs }) });
  }

  /** Resolves to the numbers of credited payments and failed polls. */
  return async function creditArrived(signal: AbortSignal, onCredited: OnCredited = async () => {}) {
    const counts = { credited: 0, failed: 0 };
    for (let polls = 0; polls < pollsPerRun && counts.failed < maxFailures && !signal.aborted; polls++) {
      const topup = await topups.takeDue();
      if (!topup) break;
      try {
        await poll(topup, counts, onCredited);
      } catch (error) {
        counts.failed += 1;
        log.warn({ err: error, topup: topup._id }, "payments of a top-up could not be looked up");
        await topups.endPoll(topup, { nextMs: intervalMs(topup) });
      }
    }
    return counts;
  };
}
