import { noCapacity } from "#errors";
import type { Clock } from "#platform/clock";
import { groupCommit } from "#platform/group-commit";
import type { Logger } from "#platform/logger";
import { answered, type Mongo } from "#platform/mongo";
import type { Accounts, StoredHold } from "./accounts.ts";
import { assertRequestId } from "./request-id.ts";
import { assertAmount } from "./usd.ts";

export interface Hold {
  readonly account: string;
  readonly requestId: string;
  /** Held if it is there. */
  readonly mostNanoUsd: bigint;
  /** If the most is not there, whatever is, but not less than this. */
  readonly leastNanoUsd: bigint;
  /** Unix milliseconds: from then on the sweeper looks at it. */
  readonly expiresAt: number;
}

export type HoldAnswer =
  | { readonly ok: true; readonly heldNanoUsd: bigint }
  | {
      readonly ok: false;
      readonly reason: "frozen" | "poor" | "full";
      readonly availableNanoUsd: bigint;
      /** By open holds: what they do not use comes back. */
      readonly heldNanoUsd: bigint;
    };

/**
 * The write of a hold ended in an error: it may stand or not. It is never tried again; whoever asked for it settles 0
 * with `heldNanoUsd`, which is what the write asked for.
 */
export class HoldUnknown extends Error {
  override readonly name = "HoldUnknown";
  readonly heldNanoUsd: bigint;

  constructor(requestId: string, heldNanoUsd: bigint, cause: unknown) {
    super(`the hold of ${requestId} may stand or not`, { cause });
    this.heldNanoUsd = heldNanoUsd;
  }
}

/** Keeps an account's document at 200 KB, and the rate at which it is written above 10,000 calls a second. */
export const mostOpenHolds = 2_000;
/** Half a thousand holds make an update of about 60 KB. */
const groupLimit = 500;

/** Accounts that are remembered to have been refused: half a megabyte. */
const mostRefused = 10_000;

/** A hold with the amount that is asked for now. */
interface Ask {
  readonly hold: Hold;
  readonly amountNanoUsd: bigint;
}

interface Standing {
  readonly frozen: boolean;
  readonly available: bigint;
  readonly held: bigint;
  readonly openHolds: number;
  readonly holds: Readonly<Record<string, unknown>>;
}

/** Who of a group fits, in order; the others get their answer. */
export function fill(standing: Standing | null, group: readonly Hold[]) {
  const fitting: Ask[] = [];
  const refused = new Map<Hold, HoldAnswer | Error>();
  if (!standing) {
    for (const hold of group) refused.set(hold, new Error(`there is no account ${hold.account}`));
    return { fitting, refused };
  }
  const totalNanoUsd = standing.available + standing.held;
  let left = standing.available;
  for (const hold of group) {
    const refuse = (reason: "frozen" | "poor" | "full") =>
      refused.set(hold, { ok: false, reason, availableNanoUsd: left, heldNanoUsd: totalNanoUsd - left });
    if (standing.holds[hold.requestId]) refused.set(hold, new Error(`${hold.requestId} is held already`));
    else if (standing.frozen) refuse("frozen");
    else if (left < hold.leastNanoUsd) refuse("poor");
    else if (standing.openHolds + fitting.length >= mostOpenHolds) refuse("full");
    else {
      const amountNanoUsd = left < hold.mostNanoUsd ? left : hold.mostNanoUsd;
      left -= amountNanoUsd;
      fitting.push({ hold, amountNanoUsd });
    }
  }
  return { fitting, refused };
}

export function createHold(deps: { accounts: Accounts; mongo: Mongo; clock: Clock; log: Logger }) {
  const { accounts, mongo, clock, log } = deps;

  /** All of them or none. */
  async function write(account: string, asks: readonly Ask[]): Promise<boolean> {
    const heldAt = new Date(clock.now());
    const holds: Record<`holds.${string}`, StoredHold> = {};
    const absent: Record<`holds.${string}`, { $exists: false }> = {};
    let sumNanoUsd = 0n;
    let expireAt = Number.MAX_SAFE_INTEGER;
    for (const { hold, amountNanoUsd } of asks) {
      const path = `holds.${hold.requestId}` as const;
      holds[path] = { amount: amountNanoUsd, heldAt, expiresAt: new Date(hold.expiresAt) };
      absent[path] = { $exists: false };
      sumNanoUsd += amountNanoUsd;
      expireAt = Math.min(expireAt, hold.expiresAt);
    }
    const room = { available: { $gte: sumNanoUsd }, openHolds: { $lte: mostOpenHolds - asks.length } };
    const { matchedCount } = await answered(
      accounts.collection.updateOne(
        { _id: account, frozen: false, ...room, ...absent },
        {
          $inc: { available: -sumNanoUsd, held: sumNanoUsd, openHolds: asks.length },
          $set: holds,
          $min: { holdsExpireAt: new Date(expireAt) },
        },
      ),
    );
    return matchedCount === 1;
  }

  async function read(account: string, group: readonly Hold[]): Promise<Standing | null> {
    const theirs = Object.fromEntries(group.map(({ requestId }) => [`holds.${requestId}.amount`, 1 as const]));
    const projection = { frozen: 1, available: 1, held: 1, openHolds: 1, ...theirs } as const;
    return answered(accounts.collection.findOne({ _id: account }, { projection })).catch(unreachable);
  }

  /**
   * Accounts whose last group was not held whole. Their next group reads before it writes, so that a caller who goes on
   * without a balance costs one read a call and no write. Nothing is refused from memory: a credit counts at once.
   */
  const refusedBefore = new Set<string>();

  function remember(account: string, refused: boolean): void {
    refusedBefore.delete(account);
    if (!refused) return;
    refusedBefore.add(account);
    const [oldest] = refusedBefore;
    if (oldest !== undefined && refusedBefore.size > mostRefused) refusedBefore.delete(oldest);
  }

  async function writeGroup(account: string, group: readonly Hold[]): Promise<(HoldAnswer | Error)[]> {
    const answers = new Map<Hold, HoldAnswer | Error>();
    let asks: readonly Ask[] = group.map((hold) => ({ hold, amountNanoUsd: hold.mostNanoUsd }));
    const keepFitting = async () => {
      const asking = asks.map(({ hold }) => hold);
      const { fitting, refused } = fill(await read(account, asking), asking);
      for (const [hold, answer] of refused) answers.set(hold, answer);
      asks = fitting;
    };
    if (refusedBefore.has(account)) await keepFitting();
    while (asks.length > 0 && !(await writeOrUnknown())) await keepFitting();
    remember(account, answers.size > 0);
    for (const { hold, amountNanoUsd } of asks)
      if (!answers.has(hold)) answers.set(hold, { ok: true, heldNanoUsd: amountNanoUsd });
    return group.map((hold) => answers.get(hold) as HoldAnswer | Error);

    async function writeOrUnknown(): Promise<boolean> {
      try {
        return await write(account, asks);
      } catch (error) {
        log.warn({ err: error, account, holds: asks.length }, "holds may stand or not");
        for (const { hold, amountNanoUsd } of asks)
          answers.set(hold, new HoldUnknown(hold.requestId, amountNanoUsd, error));
        return true;
      }
    }
  }

  /** While MongoDB is away no hold is sent: then none is unknown, and nothing has to be decided for a refused call. */
  async function reach(): Promise<void> {
    await mongo.ping().catch(unreachable);
  }

  const commit = groupCommit<Hold, HoldAnswer>({ limit: groupLimit, write: writeGroup });

  return async function hold(asked: Hold): Promise<HoldAnswer> {
    assertRequestId(asked.requestId);
    assertAmount(asked.mostNanoUsd, "mostNanoUsd");
    assertAmount(asked.leastNanoUsd, "leastNanoUsd");
    if (!Number.isSafeInteger(asked.expiresAt)) throw new RangeError("expiresAt must be unix milliseconds");
    if (mongo.upSince() === undefined) await reach();
    return commit(asked.account, asked.requestId, asked);
  };
}

function unreachable(cause: unknown): never {
  throw noCapacity("The balance cannot be reached right now; nothing was charged.", 1, cause);
}
