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
  readonly k: string;
  readonly v: StoredHold;
}

/**
 * Ends holds past their time. Any number of processes may do it at once: the first insert decides, the filter of an
 * application lets it happen once. Nothing is tried twice here; the next sweep comes anyway.
 */
export function createSweep(deps: Deps) {
  const { mongo, accounts, ledger, clock, log, applyOnce, decideOnce } = deps;

  async function mayDecide(hold: Overdue, isWaiting: (requestId: string) => Promise<boolean>): Promise<boolean> {
    if (hold.v.expiresAt.getTime() + patienceMs > clock.now() && (await isWaiting(hold.k))) return false;
    // Asked last: what follows is the insert.
    const upSince = mongo.upSince();
    return upSince !== undefined && clock.now() - upSince >= settlingMs;
  }

  const decideNothing = (account: string, { k: requestId, v }: Overdue) =>
    decideOnce({
      account,
      requestId,
      heldNanoUsd: v.amount,
      costNanoUsd: 0n,
      status: "failed",
      error: "no_capacity",
      attempts: 0,
      usage: {},
      estimated: false,
      totalMs: clock.now() - v.heldAt.getTime(),
    });

  /** Throws 503 while MongoDB is away. */
  async function abandon(account: string): Promise<void> {
    try {
      const stored = await answered(accounts.collection.findOne({ _id: account }, { projection: { holds: 1 } }));
      const endings = Object.entries(stored?.holds ?? {}).map(async ([k, v]) => {
        const { entry } = await decideNothing(account, { k, v });
        await applyOnce({ account, requestId: k, heldNanoUsd: v.amount, costNanoUsd: entry.costNanoUsd });
      });
      await Promise.all(endings);
    } catch (error) {
      throw noCapacity("The balance cannot be reached right now; nothing was charged.", 1, error);
    }
  }

  async function sweep(isWaiting: (requestId: string) => Promise<boolean>): Promise<Swept> {
    let applied = 0;
    let decided = 0;

    async function end(account: string, hold: Overdue, costNanoUsd: bigint | undefined): Promise<void> {
      let cost = costNanoUsd;
      if (cost === undefined) {
        if (!(await mayDecide(hold, isWaiting))) return;
        const { won, entry } = await decideNothing(account, hold);
        if (won) decided += 1;
        cost = entry.costNanoUsd;
      }
      const application = { account, requestId: hold.k, heldNanoUsd: hold.v.amount, costNanoUsd: cost };
      if (await applyOnce(application)) applied += 1;
    }

    const now = new Date(clock.now());
    for await (const { _id: account, overdue } of findOverdue(accounts, now)) {
      for (let from = 0; from < overdue.length; from += chunk) {
        const holds = overdue.slice(from, from + chunk);
        const entries = await ledger.standing(holds.map(({ k }) => k));
        const endings = holds.map(async (hold) => {
          const entry = entries.get(hold.k);
          await end(account, hold, entry && toEntry(entry).costNanoUsd).catch((error: unknown) =>
            log.error({ err: error, account, requestId: hold.k }, "an overdue hold was not ended"),
          );
        });
        await Promise.all(endings);
      }
    }
    await answered(raiseBounds(accounts, now));
    return { applied, decided };
  }

  return { sweep, abandon };
}

/** A bound that has passed, or none: read from the partial index. */
const mayBeOverdue = (now: Date) => ({ ...withOpenHolds, holdsExpireAt: { $not: { $gte: now } } });

/** Account by account; of each only the holds in question cross the wire. */
const findOverdue = ({ collection }: Accounts, now: Date) =>
  collection.aggregate<{ _id: string; overdue: Overdue[] }>([
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
