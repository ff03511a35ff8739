import { inBatches, longRunning, scatter } from "#platform/mongo/collection";
import { type Accounts, type StoredHold, withOpenHolds } from "./accounts.ts";
import { type AnyCapture, type Captured, type ReleaseReason, zeroCapture } from "./capture.ts";
import type { MoneyDeps } from "./deps.ts";
import { unavailable } from "./holds.ts";
import { instanceOf, isLease, type LeaseClosing } from "./leases/closing.ts";
import { assertRequestId, type LedgerEntry, type StoredEntry, toEntry } from "./ledger.ts";
import type { Settlement } from "./settle.ts";

/** Afterwards a hold is released even if it is still pending. */
const maxOverdueMs = 3_600_000;
const batchSize = 100;

/** Returns true if MongoDB has been up for so long that processes which waited for it have written their captures. */
export function hasRecovered({ mongo, clock, recoveryMs }: Pick<MoneyDeps, "mongo" | "clock" | "recoveryMs">): boolean {
  const upSince = mongo.upSince();
  return upSince !== undefined && clock.now() - upSince > recoveryMs;
}

/** Resolves to true if a job that carries only this call may still run, or if its upload may still arrive. */
type IsPending = (requestId: string, account: string, since: Date) => Promise<boolean>;
/** Resolves to true if the instance lives or has jobs in a queue, or may have had jobs that Redis lost since then. */
type IsServing = (instance: string, since: Date) => Promise<boolean>;

export interface OpenHold {
  readonly account: string;
  readonly requestId: string;
  readonly hold: StoredHold;
}

/** What is known of a call that is ended, in addition to its hold, and why it ends. */
export interface KnownEnd extends Partial<ReleaseReason> {
  readonly call?: Pick<AnyCapture, "key" | "endpoint" | "model">;
}

/** Ends holds that have expired. Safe in any number of concurrent processes. The next sweep retries what failed. */
export function createSweep(
  deps: MoneyDeps & {
    captureOnce: (call: AnyCapture) => Promise<Captured>;
    settleOnce: (settlement: Settlement) => Promise<boolean>;
    closeLease: LeaseClosing["closeLease"];
  },
) {
  const { accounts, ledger, clock, log, captureOnce, settleOnce, closeLease } = deps;

  async function mayRelease(overdue: OpenHold, isPending: IsPending, isServing: IsServing): Promise<boolean> {
    const { account, requestId, hold } = overdue;
    const { instance, ownJob, heldAt } = hold;
    const mayRun = () =>
      instance == null || ownJob ? isPending(requestId, account, heldAt) : isServing(instance, heldAt);
    if (hold.expiresAt.getTime() + maxOverdueMs > clock.now() && (await mayRun())) return false;
    // Checked last, immediately before the insert.
    return hasRecovered(deps);
  }

  /**
   * The job of a call without a capture is still in its queue, so there is no process to wait for. The result describes
   * a moment after the hold was read.
   */
  const mayClose = async ({ requestId, hold: { callsEndAt, heldAt } }: OpenHold, isServing: IsServing) =>
    (callsEndAt != null && callsEndAt.getTime() <= clock.now()) || !(await isServing(instanceOf(requestId), heldAt));

  function captureZero({ account, requestId, hold }: OpenHold, { call, ...reason }: KnownEnd = {}): Promise<Captured> {
    const totalMs = clock.now() - hold.heldAt.getTime();
    const ended = { ...call, account, requestId, heldNanoUsd: hold.amount, totalMs };
    const { status = "failed", error = status === "failed" ? "no_capacity" : undefined } = reason;
    return captureOnce(zeroCapture(ended, { status, error }));
  }

  const settleCost = ({ account, requestId, hold }: OpenHold, costNanoUsd: bigint): Promise<boolean> =>
    settleOnce({ account, requestId, heldNanoUsd: hold.amount, costNanoUsd });

  /** Settles a call at zero by its hold, unless it is captured. Returns the entry that counts. */
  async function releaseHold(open: OpenHold, known?: KnownEnd): Promise<LedgerEntry> {
    const { entry } = await captureZero(open, known);
    await settleCost(open, entry.costNanoUsd);
    return entry;
  }

  /**
   * Like `releaseHold`, but for a call that may have no hold yet. Afterwards the call costs what the entry says,
   * regardless of what its processes still do. The sweeper ends a hold that is made later. Throws 503 while MongoDB is
   * unavailable.
   */
  async function endUncaptured(account: string, requestId: string, known?: KnownEnd): Promise<LedgerEntry> {
    assertRequestId(requestId);
    const projection = { [`holds.${requestId}`]: 1 } as const;
    const stored = await accounts.collection.findOne({ _id: account }, { projection }).catch(unavailable);
    const hold = stored?.holds?.[requestId];
    if (hold) return releaseHold({ account, requestId, hold }, known).catch(unavailable);
    const now = new Date(clock.now());
    const none = { amount: 0n, heldAt: now, expiresAt: now };
    return (await captureZero({ account, requestId, hold: none }, known).catch(unavailable)).entry;
  }

  /** Releases all holds of an account that has no running call. Throws 503 while MongoDB is unavailable. */
  async function releaseAll(account: string): Promise<void> {
    try {
      const stored = await accounts.collection.findOne({ _id: account }, { projection: { holds: 1 } });
      const calls = Object.entries(stored?.holds ?? {}).filter(([id]) => !isLease(id));
      await Promise.all(calls.map(([requestId, hold]) => releaseHold({ account, requestId, hold })));
    } catch (error) {
      return unavailable(error);
    }
  }

  /**
   * Ends expired holds: settles captured costs, and settles at zero the calls that are not pending (or an hour
   * overdue), except until MongoDB has been up for `recoveryMs`. Closes the leases of dead instances, and any
   * other lease at its end. Resolves to the number of ended holds, including leases (`settled`), and of captured calls
   * (`captured`).
   */
  const sweep = async (isPending: IsPending, isServing: IsServing = async () => true) => {
    const now = new Date(clock.now());
    const swept = await endAll(findOverdue(accounts, now), isPending, isServing);
    await updateEarliestExpiry(accounts, now);
    return swept;
  };

  /**
   * Ends the holds of a dead instance's calls that have no job, without waiting for their expiry. If Redis may have lost a
   * job since the hold was made, the call may still run: it counts as pending.
   */
  const endHoldsOf = (instance: string, isPending: IsPending, isServing: IsServing) =>
    endAll(findHoldsOf(accounts, instance), isPending, isServing);

  async function endAll(holds: AsyncIterable<OpenHold>, isPending: IsPending, isServing: IsServing) {
    let settled = 0;
    let captured = 0;

    async function end(open: OpenHold, existing: StoredEntry | undefined): Promise<void> {
      const { account, requestId, hold } = open;
      if (isLease(requestId)) {
        if ((await mayClose(open, isServing)) && (await closeLease(account, requestId, { sweptAt: hold.expiresAt })))
          settled += 1;
        return;
      }
      if (!existing && !(await mayRelease(open, isPending, isServing))) return;
      const { won, entry } = existing ? { won: false, entry: toEntry(existing) } : await captureZero(open);
      if (won) captured += 1;
      if (await settleCost(open, entry.costNanoUsd)) settled += 1;
    }

    async function endBatch(batch: readonly OpenHold[]): Promise<void> {
      const entries = await ledger.readCommitted(batch.map(({ account, requestId }) => ({ account, _id: requestId })));
      const endings = batch.map((open) => {
        const { account, requestId } = open;
        return end(open, entries.get(requestId)).catch((error: unknown) =>
          log.error({ err: error, account, requestId }, "an overdue hold could not be ended"),
        );
      });
      await Promise.all(endings);
    }

    for await (const batch of inBatches(holds, batchSize)) await endBatch(batch);
    return { settled, captured };
  }

  return { sweep, endHoldsOf, endUncaptured, releaseAll };
}

/** Matches accounts whose `holdsExpireAt` has passed or is missing, by the partial index. */
const mayBeOverdue = (now: Date) => ({ ...withOpenHolds, holdsExpireAt: { $not: { $gte: now } } });

/** The server returns only the matching holds, and reads only accounts that have any, by the sweeper's index. */
const findHolds = ({ collection }: Accounts, accounts: object, holds: object, limit?: number) =>
  collection.aggregate<OpenHold>(
    [
      { $match: accounts },
      { $project: { holds: { $objectToArray: "$holds" } } },
      { $unwind: "$holds" },
      { $match: holds },
      ...(limit === undefined ? [] : [{ $limit: limit }]),
      { $project: { _id: 0, account: "$_id", requestId: "$holds.k", hold: "$holds.v" } },
    ],
    { hint: { holdsExpireAt: 1 }, ...longRunning, ...scatter("sweep") },
  );

export const findOverdue = (accounts: Accounts, now: Date, limit?: number) =>
  findHolds(accounts, mayBeOverdue(now), { "holds.v.expiresAt": { $lt: now } }, limit);

const findHoldsOf = (accounts: Accounts, instance: string) =>
  findHolds(accounts, withOpenHolds, { "holds.v.instance": instance });

/**
 * Sets a `holdsExpireAt` that has passed to the earliest expiry of the currently open holds, so that an account is not
 * read again at each sweep. The update computes it from the document, so that concurrent holds are not missed.
 */
const updateEarliestExpiry = ({ collection }: Accounts, now: Date) =>
  collection.updateMany(
    mayBeOverdue(now),
    [
      {
        $set: {
          holdsExpireAt: { $min: { $map: { input: { $objectToArray: "$holds" }, in: "$$this.v.expiresAt" } } },
        },
      },
    ],
    scatter("sweep"),
  );
