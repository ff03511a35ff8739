import { longRunning, scatter } from "#platform/collection";
import { type Accounts, type StoredHold, withOpenHolds } from "./accounts.ts";
import type { MoneyDeps } from "./deps.ts";
import { unavailable } from "./holds.ts";
import { instanceOf, isLease, type LeaseClosing } from "./leases/closing.ts";
import { assertRequestId, type LedgerEntry, type StoredEntry, toEntry } from "./ledger.ts";
import { type AnyDecision, type Application, type Decided, releaseDecision } from "./settle.ts";

/** After this a hold is released even if it is still pending. */
const maxOverdueMs = 3_600_000;
/** After MongoDB came back, processes that waited to write a decision go first. */
const recoveryMs = 60_000;
const batchSize = 100;

/** Resolves with true if a job that carries this call alone may still run, or its upload arrive. */
type IsPending = (requestId: string, account: string) => Promise<boolean>;
/** Resolves with true if the instance lives or has jobs in a queue, or may have had some that Redis lost since then. */
type IsServing = (instance: string, since: Date) => Promise<boolean>;

export interface OpenHold {
  readonly account: string;
  readonly requestId: string;
  readonly hold: StoredHold;
}

/**
 * Ends holds that have expired. Any number of processes may do it at once: the first insert decides, and the filter of
 * an application lets it happen once. Nothing is retried, because the next sweep follows anyway.
 */
export function createSweep(
  deps: MoneyDeps & {
    decideOnce: (decision: AnyDecision) => Promise<Decided>;
    applyOnce: (application: Application) => Promise<boolean>;
    closeLease: LeaseClosing["closeLease"];
  },
) {
  const { mongo, accounts, ledger, clock, log, decideOnce, applyOnce, closeLease } = deps;

  async function mayRelease(overdue: OpenHold, isPending: IsPending, isServing: IsServing): Promise<boolean> {
    const { account, requestId, hold } = overdue;
    const mayRun = () =>
      hold.instance == null ? isPending(requestId, account) : isServing(hold.instance, hold.heldAt);
    if (hold.expiresAt.getTime() + maxOverdueMs > clock.now() && (await mayRun())) return false;
    // Checked last, right before the insert.
    const upSince = mongo.upSince();
    return upSince !== undefined && clock.now() - upSince >= recoveryMs;
  }

  /**
   * A job that is not decided yet is still in its queue, so that nobody has to be waited for. The answer is about a moment after
   * the hold was read.
   */
  const mayClose = async ({ requestId, hold: { callsEndAt, heldAt } }: OpenHold, isServing: IsServing) =>
    (callsEndAt != null && callsEndAt.getTime() <= clock.now()) || !(await isServing(instanceOf(requestId), heldAt));

  function decideZero({ account, requestId, hold }: OpenHold): Promise<Decided> {
    const totalMs = clock.now() - hold.heldAt.getTime();
    const call = { account, requestId, heldNanoUsd: hold.amount, totalMs };
    return decideOnce(releaseDecision(call, { status: "failed", error: "no_capacity" }));
  }

  const applyCost = ({ account, requestId, hold }: OpenHold, costNanoUsd: bigint): Promise<boolean> =>
    applyOnce({ account, requestId, heldNanoUsd: hold.amount, costNanoUsd });

  /** Settles at zero a call of which only the hold is known, unless it is decided. Resolves with the entry that stands. */
  async function releaseHold(open: OpenHold): Promise<LedgerEntry> {
    const { entry } = await decideZero(open);
    await applyCost(open, entry.costNanoUsd);
    return entry;
  }

  /**
   * The same of a call that may have no hold yet: from then on it costs what the entry says, whatever its processes still do. The
   * sweeper ends a hold that comes later.
   * Throws 503 while MongoDB is unavailable.
   */
  async function endUndecided(account: string, requestId: string): Promise<LedgerEntry> {
    assertRequestId(requestId);
    const projection = { [`holds.${requestId}`]: 1 } as const;
    const stored = await accounts.collection.findOne({ _id: account }, { projection }).catch(unavailable);
    const hold = stored?.holds?.[requestId];
    if (hold) return releaseHold({ account, requestId, hold }).catch(unavailable);
    const now = new Date(clock.now());
    const none = { amount: 0n, heldAt: now, expiresAt: now };
    return (await decideZero({ account, requestId, hold: none }).catch(unavailable)).entry;
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
   * Ends expired holds: applies what is decided; settles at zero what is not pending (or an hour overdue), but not in the
   * first minute after MongoDB came back. Closes the leases of dead instances, and any other at its end. Resolves with how
   * many holds, leases too, were `applied`, and calls `decided`.
   */
  async function sweep(isPending: IsPending, isServing: IsServing = async () => true) {
    let applied = 0;
    let decided = 0;

    async function end(overdue: OpenHold, existing: StoredEntry | undefined): Promise<void> {
      const { account, requestId, hold } = overdue;
      if (isLease(requestId)) {
        if ((await mayClose(overdue, isServing)) && (await closeLease(account, requestId, hold.expiresAt)))
          applied += 1;
        return;
      }
      if (!existing && !(await mayRelease(overdue, isPending, isServing))) return;
      const { won, entry } = existing ? { won: false, entry: toEntry(existing) } : await decideZero(overdue);
      if (won) decided += 1;
      if (await applyCost(overdue, entry.costNanoUsd)) applied += 1;
    }

    async function endAll(batch: readonly OpenHold[]): Promise<void> {
      const entries = await ledger.readCommitted(batch.map(({ account, requestId }) => ({ account, _id: requestId })));
      const endings = batch.map((overdue) => {
        const { account, requestId } = overdue;
        return end(overdue, entries.get(requestId)).catch((error: unknown) =>
          log.error({ err: error, account, requestId }, "an overdue hold was not ended"),
        );
      });
      await Promise.all(endings);
    }

    const now = new Date(clock.now());
    let batch: OpenHold[] = [];
    for await (const overdue of findOverdue(accounts, now)) {
      batch.push(overdue);
      if (batch.length < batchSize) continue;
      await endAll(batch);
      batch = [];
    }
    if (batch.length > 0) await endAll(batch);
    await updateEarliestExpiry(accounts, now);
    return { applied, decided };
  }

  return { sweep, endUndecided, releaseAll };
}

/** Accounts whose `holdsExpireAt` has passed or is absent, by the partial index. */
const mayBeOverdue = (now: Date) => ({ ...withOpenHolds, holdsExpireAt: { $not: { $gte: now } } });

/** The server sends only the holds that are overdue. */
export const findOverdue = ({ collection }: Accounts, now: Date, limit?: number) =>
  collection.aggregate<OpenHold>(
    [
      { $match: mayBeOverdue(now) },
      { $project: { holds: { $objectToArray: "$holds" } } },
      { $unwind: "$holds" },
      { $match: { "holds.v.expiresAt": { $lt: now } } },
      ...(limit === undefined ? [] : [{ $limit: limit }]),
      { $project: { _id: 0, account: "$_id", requestId: "$holds.k", hold: "$holds.v" } },
    ],
    { ...longRunning, ...scatter("sweep") },
  );

/**
 * Sets a `holdsExpireAt` that has passed to the earliest expiry of the holds that are open now, so that an account is
 * not read again at each sweep. The update computes it from the document, so a hold made meanwhile is not missed.
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
