import { noCapacity } from "#errors";
import type { Clock } from "#platform/clock";
import { groupCommit } from "#platform/group-commit";
import type { Logger } from "#platform/logger";
import { answered, type Mongo } from "#platform/mongo";
import type { Accounts, StoredAccount, StoredHold } from "./accounts.ts";
import { assertRequestId } from "./ledger.ts";
import { assertAmount } from "./usd.ts";

export interface Hold {
  readonly account: string;
  readonly requestId: string;
  /** Held if the balance covers it. */
  readonly maxNanoUsd: bigint;
  /** Else all that is available is held, but not less than this. */
  readonly minNanoUsd: bigint;
  /** Unix milliseconds: from then on the sweeper may end it. */
  readonly expiresAt: number;
}

export type HoldResult =
  | { readonly ok: true; readonly heldNanoUsd: bigint }
  | {
      readonly ok: false;
      readonly reason: Refusal;
      readonly availableNanoUsd: bigint;
      /** By open holds: what they do not use becomes available again. */
      readonly heldNanoUsd: bigint;
    };

/** `full`: the account has `maxOpenHolds`. */
type Refusal = "frozen" | "insufficient" | "full";

/**
 * The write of a hold ended in an error, so it may have taken effect or not. It is never retried; the caller releases
 * the call with `heldNanoUsd`, the amount that the write was to hold.
 */
export class HoldUnknown extends Error {
  override readonly name = "HoldUnknown";
  readonly heldNanoUsd: bigint;

  constructor(requestId: string, heldNanoUsd: bigint, cause: unknown) {
    super(`the outcome of the hold of ${requestId} is unknown`, { cause });
    this.heldNanoUsd = heldNanoUsd;
  }
}

/** Bounds an account's document to 200 KB, so that it can be written for 10,000 calls a second. */
export const maxOpenHolds = 2_000;
/** 500 holds make an update of about 60 KB. */
const groupLimit = 500;

/** Remembered accounts that were refused: half a megabyte. */
const maxRefusedAccounts = 10_000;

/** A hold with the amount to write. */
interface SizedHold {
  readonly hold: Hold;
  readonly amountNanoUsd: bigint;
}

type AccountState = Pick<StoredAccount, "frozen" | "available" | "held" | "openHolds"> & {
  readonly holds: Readonly<Record<string, unknown>>;
};

/** The holds of a group that the account can take, in order, and the results of the others. */
export function fitHolds(state: AccountState | null, group: readonly Hold[]) {
  const fitting: SizedHold[] = [];
  const refused = new Map<Hold, HoldResult | Error>();
  if (!state) {
    for (const hold of group) refused.set(hold, new Error(`there is no account ${hold.account}`));
    return { fitting, refused };
  }
  const totalNanoUsd = state.available + state.held;
  let availableNanoUsd = state.available;
  for (const hold of group) {
    const refuse = (reason: Refusal) =>
      refused.set(hold, { ok: false, reason, availableNanoUsd, heldNanoUsd: totalNanoUsd - availableNanoUsd });
    if (state.holds[hold.requestId]) refused.set(hold, new Error(`${hold.requestId} is held already`));
    else if (state.frozen) refuse("frozen");
    else if (availableNanoUsd < hold.minNanoUsd) refuse("insufficient");
    else if (state.openHolds + fitting.length >= maxOpenHolds) refuse("full");
    else {
      const amountNanoUsd = availableNanoUsd < hold.maxNanoUsd ? availableNanoUsd : hold.maxNanoUsd;
      availableNanoUsd -= amountNanoUsd;
      fitting.push({ hold, amountNanoUsd });
    }
  }
  return { fitting, refused };
}

export function createHold(deps: { accounts: Accounts; mongo: Mongo; clock: Clock; log: Logger }) {
  const { accounts, mongo, clock, log } = deps;

  /** Writes all of them or none. */
  async function write(account: string, sized: readonly SizedHold[]): Promise<boolean> {
    const heldAt = new Date(clock.now());
    const holds: Record<`holds.${string}`, StoredHold> = {};
    const absent: Record<`holds.${string}`, { $exists: false }> = {};
    let sumNanoUsd = 0n;
    let expireAt = Number.MAX_SAFE_INTEGER;
    for (const { hold, amountNanoUsd } of sized) {
      const path = `holds.${hold.requestId}` as const;
      holds[path] = { amount: amountNanoUsd, heldAt, expiresAt: new Date(hold.expiresAt) };
      absent[path] = { $exists: false };
      sumNanoUsd += amountNanoUsd;
      expireAt = Math.min(expireAt, hold.expiresAt);
    }
    const enough = { available: { $gte: sumNanoUsd }, openHolds: { $lte: maxOpenHolds - sized.length } };
    const { matchedCount } = await answered(
      accounts.collection.updateOne(
        { _id: account, frozen: false, ...enough, ...absent },
        {
          $inc: { available: -sumNanoUsd, held: sumNanoUsd, openHolds: sized.length },
          $set: holds,
          $min: { holdsExpireAt: new Date(expireAt) },
        },
      ),
    );
    return matchedCount === 1;
  }

  async function read(account: string, group: readonly Hold[]): Promise<AccountState | null> {
    const holds = Object.fromEntries(group.map(({ requestId }) => [`holds.${requestId}.amount`, 1 as const]));
    const projection = { frozen: 1, available: 1, held: 1, openHolds: 1, ...holds } as const;
    return answered(accounts.collection.findOne({ _id: account }, { projection })).catch(unavailable);
  }

  /**
   * Accounts whose last group did not fit. Their next group is read before it is written, so that a caller who continues
   * without a balance costs one read per call and no write. No hold is refused from memory: a credit counts at once.
   */
  const refusedBefore = new Set<string>();

  function remember(account: string, refused: boolean): void {
    refusedBefore.delete(account);
    if (!refused) return;
    refusedBefore.add(account);
    const [oldest] = refusedBefore;
    if (oldest !== undefined && refusedBefore.size > maxRefusedAccounts) refusedBefore.delete(oldest);
  }

  async function writeGroup(account: string, group: readonly Hold[]): Promise<(HoldResult | Error)[]> {
    const results = new Map<Hold, HoldResult | Error>();
    let sized: readonly SizedHold[] = group.map((hold) => ({ hold, amountNanoUsd: hold.maxNanoUsd }));
    const refuseWhatDoesNotFit = async () => {
      const pending = sized.map(({ hold }) => hold);
      const { fitting, refused } = fitHolds(await read(account, pending), pending);
      for (const [hold, result] of refused) results.set(hold, result);
      sized = fitting;
    };
    const markUnknown = (error: unknown): true => {
      log.warn({ err: error, account, holds: sized.length }, "the outcome of holds is unknown");
      for (const { hold, amountNanoUsd } of sized)
        results.set(hold, new HoldUnknown(hold.requestId, amountNanoUsd, error));
      return true;
    };
    if (refusedBefore.has(account)) await refuseWhatDoesNotFit();
    while (sized.length > 0 && !(await write(account, sized).catch(markUnknown))) await refuseWhatDoesNotFit();
    remember(account, results.size > 0);
    for (const { hold, amountNanoUsd } of sized)
      if (!results.has(hold)) results.set(hold, { ok: true, heldNanoUsd: amountNanoUsd });
    return group.map((hold) => results.get(hold) as HoldResult | Error);
  }

  const commit = groupCommit<Hold, HoldResult>({ limit: groupLimit, write: writeGroup });

  /** Throws `HoldUnknown` if the write may or may not have taken effect; 503, with nothing held, while MongoDB is unavailable. */
  return async function hold(request: Hold): Promise<HoldResult> {
    assertRequestId(request.requestId);
    assertAmount(request.maxNanoUsd, "maxNanoUsd");
    assertAmount(request.minNanoUsd, "minNanoUsd");
    if (!Number.isSafeInteger(request.expiresAt)) throw new RangeError("expiresAt must be unix milliseconds");
    // While MongoDB is unavailable no hold is sent: then none is unknown, and nothing has to be released.
    if (mongo.upSince() === undefined) await mongo.ping().catch(unavailable);
    return commit(request.account, request.requestId, request);
  };
}

function unavailable(cause: unknown): never {
  throw noCapacity("The balance cannot be reached right now; nothing was charged.", 1, cause);
}
