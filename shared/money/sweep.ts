import { noCapacity } from "#errors";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { answered, type Mongo } from "#platform/mongo";
import { type Accounts, type StoredHold, withOpenHolds } from "./accounts.ts";
import type { createApply } from "./apply.ts";
import type { createDecide } from "./decide.ts";
import { type Ledger, toEntry } from "./ledger.ts";

export interface Swept {
  /** Holds that were ended. */
  readonly applied: number;
  /** Calls that were decided 0. */
  readonly decided: number;
}

interface Deps
  extends Pick<ReturnType<typeof createApply>, "applyOnce">,
    Pick<ReturnType<typeof createDecide>, "decideOnce"> {
  readonly mongo: Mongo;
  readonly accounts: Accounts;
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly log: Logger;
}

/** After this a job that still is in a queue will not be waited for. */
const patienceMs = 3_600_000;
/** Who waited for MongoDB to write a decision goes first. */
const settlingMs = 60_000;
const chunk = 100;

interface Overdue {
  readonly account: string;
  readonly requestId: string;
  readonly hold: StoredHold;
}

/**
 * Ends holds past their time. Any number of processes may do it at once: the first insert decides, the filter of an
 * application lets it happen once. Nothing is tried twice here; the next sweep comes anyway.
 */
export function createSweep(deps: Deps) {
  const { mongo, accounts, ledger, clock, log, applyOnce, decideOnce } = deps;

  async function mayDecide(
    { requestId, hold }: Overdue,
    isWaiting: (id: string) => Promise<boolean>,
  ): Promise<boolean> {
    if (hold.expiresAt.getTime() + patienceMs > clock.now() && (await isWaiting(requestId))) return false;
    // Asked last: what follows is the insert.
    const upSince = mongo.upSince();
    return upSince !== undefined && clock.now() - upSince >= settlingMs;
  }

  const decideNothing = ({ account, requestId, hold }: Overdue) =>
    decideOnce({
      account,
      requestId,
      heldNanoUsd: hold.amount,
      costNanoUsd: 0n,
      status: "failed",
      error: "no_capacity",
      attempts: 0,
      usage: {},
      estimated: false,
      totalMs: clock.now() - hold.heldAt.getTime(),
    });

  /** Throws 503 while MongoDB is away. */
  async function abandon(account: string): Promise<void> {
    try {
      const stored = await answered(accounts.collection.findOne({ _id: account }, { projection: { holds: 1 } }));
      const endings = Object.entries(stored?.holds ?? {}).map(async ([requestId, hold]) => {
        const { entry } = await decideNothing({ account, requestId, hold });
        await applyOnce({ account, requestId, heldNanoUsd: hold.amount, costNanoUsd: entry.costNanoUsd });
      });
      await Promise.all(endings);
    } catch (error) {
      throw noCapacity("The balance cannot be reached right now; nothing was charged.", 1, error);
    }
  }

  async function sweep(isWaiting: (requestId: string) => Promise<boolean>): Promise<Swept> {
    let applied = 0;
    let decided = 0;

    async function end(overdue: Overdue, costNanoUsd: bigint | undefined): Promise<void> {
      const { account, requestId, hold } = overdue;
      let cost = costNanoUsd;
      if (cost === undefined) {
        if (!(await mayDecide(overdue, isWaiting))) return;
        const { won, entry } = await decideNothing(overdue);
        if (won) decided += 1;
        cost = entry.costNanoUsd;
      }
      if (await applyOnce({ account, requestId, heldNanoUsd: hold.amount, costNanoUsd: cost })) applied += 1;
    }

    async function endAll(some: readonly Overdue[]): Promise<void> {
      const entries = await ledger.standing(some.map(({ requestId }) => requestId));
      const endings = some.map(async (overdue) => {
        const { account, requestId } = overdue;
        const entry = entries.get(requestId);
        await end(overdue, entry && toEntry(entry).costNanoUsd).catch((error: unknown) =>
          log.error({ err: error, account, requestId }, "an overdue hold was not ended"),
        );
      });
      await Promise.all(endings);
    }

    const now = new Date(clock.now());
    let some: Overdue[] = [];
    for await (const { _id: account, overdue } of findOverdue(accounts, now)) {
      for (const { k: requestId, v: hold } of overdue) {
        some.push({ account, requestId, hold });
        if (some.length < chunk) continue;
        await endAll(some);
        some = [];
      }
    }
    if (some.length > 0) await endAll(some);
    await answered(raiseBounds(accounts, now));
    return { applied, decided };
  }

  return { sweep, abandon };
}

/** A bound that has passed, or none: read from the partial index. */
const mayBeOverdue = (now: Date) => ({ ...withOpenHolds, holdsExpireAt: { $not: { $gte: now } } });

/** Of each account only the holds in question cross the wire. */
const findOverdue = ({ collection }: Accounts, now: Date) =>
  collection.aggregate<{ _id: string; overdue: { k: string; v: StoredHold }[] }>([
    { $match: mayBeOverdue(now) },
    {
      $project: {
        overdue: { $filter: { input: { $objectToArray: "$holds" }, cond: { $lt: ["$$this.v.expiresAt", now] } } },
      },
    },
    { $match: { "overdue.0": { $exists: true } } },
  ]);

/**
 * A bound that has passed becomes the earliest expiry of the holds that are open now, so that an account is looked at
 * once for the longest life of a hold, and not at each sweep. The document itself is asked in the write: a hold taken
 * meanwhile cannot be missed.
 */
const raiseBounds = ({ collection }: Accounts, now: Date) =>
  collection.updateMany(mayBeOverdue(now), [
    {
      $set: {
        holdsExpireAt: { $min: { $map: { input: { $objectToArray: "$holds" }, in: "$$this.v.expiresAt" } } },
      },
    },
  ]);
