import { accountFrozen, insufficientBalance, noCapacity, rateLimited, type ServiceError } from "#errors";
import { sleep } from "#platform/clock";
import type { Background } from "#platform/concurrency/background";
import { groupCommit } from "#platform/concurrency/group-commit";
import type { StoredAccount, StoredHold } from "./accounts.ts";
import type { Capture, ReleasedCall, ReleaseReason } from "./capture.ts";
import type { MoneyDeps } from "./deps.ts";
import { assertRequestId } from "./ledger.ts";
import { isPaymentAccount, unitNanoUsd } from "./payment-accounts.ts";
import { createRefusedAccounts } from "./refused-accounts.ts";
import { assertAmount } from "./usd.ts";

export interface Hold {
  readonly account: string;
  readonly requestId: string;
  /** The amount that is held if the balance covers it. */
  readonly maxNanoUsd: bigint;
  /** If the balance is lower, all that is available is held, but no less than this. */
  readonly minNanoUsd: bigint;
  /** Unix milliseconds after which the sweeper may end the hold. */
  readonly expiresAt: number;
  /** The id of the API key. */
  readonly key?: string;
  /** The API instance that admitted the call. */
  readonly instance?: string;
  /** The call does not share its job with others: the job's id is the request id. */
  readonly ownJob?: true;
}

/** A hold and its call. If the hold has to be released, the entry is written immediately. */
export interface CallHold extends Omit<Hold, "key">, Pick<Capture, "kind" | "key" | "endpoint" | "model"> {
  /** The message of the 402. */
  insufficientText(availableNanoUsd: bigint): string;
}

export type HoldResult =
  | { readonly ok: true; readonly heldNanoUsd: bigint }
  | {
      readonly ok: false;
      readonly reason: Refusal;
      readonly availableNanoUsd: bigint;
      /** The sum of open holds. The part that they do not use becomes available again. */
      readonly heldNanoUsd: bigint;
    };

/** `full` means that the account has `maxOpenHolds`. */
type Refusal = "frozen" | "insufficient" | "full";

/**
 * The write of a hold ended in an error, so it may or may not have taken effect. It is never retried; the caller
 * releases the call with `heldNanoUsd`, the amount that the write was to hold.
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
/** An update with 500 holds takes about 60 KB. */
const groupLimit = 500;

/** A pause in which calls end, and leases return what they do not use. */
const returnMs = 50;
/** Afterwards the sweeper ends a hold whose outcome is unknown. This also bounds `settled`. */
const releaseTimeoutMs = 120_000;

interface SizedHold {
  readonly hold: Hold;
  readonly amountNanoUsd: bigint;
}

type AccountState = Pick<StoredAccount, "frozen" | "available" | "held" | "openHolds"> & {
  readonly holds: Readonly<Record<string, unknown>>;
};

/** Returns the holds of a group that the account can take, in order, and the results of the others. */
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

export function createHold(
  deps: MoneyDeps & {
    release: (call: ReleasedCall, reason: ReleaseReason) => Promise<unknown>;
    /** Has leases return what they do not use of an account. Resolves to what they may return later. */
    recall: (account: string) => Promise<bigint>;
    background: Background;
  },
) {
  const { accounts, mongo, release, recall, background, observer, clock, log } = deps;

  /** Writes all of them or none. */
  async function write(account: string, sized: readonly SizedHold[]): Promise<boolean> {
    const heldAt = new Date(clock.now());
    const holds: Record<`holds.${string}`, StoredHold> = {};
    const absent: Record<`holds.${string}`, { $exists: false }> = {};
    let sumNanoUsd = 0n;
    let expireAt = Number.MAX_SAFE_INTEGER;
    for (const { hold, amountNanoUsd } of sized) {
      const path = `holds.${hold.requestId}` as const;
      const { key, instance, ownJob, expiresAt } = hold;
      holds[path] = {
        amount: amountNanoUsd,
        heldAt,
        expiresAt: new Date(expiresAt),
        ...(key !== undefined && { key }),
        ...(instance !== undefined && { instance }),
        ...(ownJob && { ownJob }),
      };
      absent[path] = { $exists: false };
      sumNanoUsd += amountNanoUsd;
      expireAt = Math.min(expireAt, hold.expiresAt);
    }
    const enough = { available: { $gte: sumNanoUsd }, openHolds: { $lte: maxOpenHolds - sized.length } };
    const { matchedCount } = await accounts.collection.updateOne(
      { _id: account, frozen: false, ...enough, ...absent },
      {
        $inc: { available: -sumNanoUsd, held: sumNanoUsd, openHolds: sized.length },
        $set: holds,
        $min: { holdsExpireAt: new Date(expireAt) },
      },
    );
    return matchedCount === 1;
  }

  async function read(account: string, group: readonly Hold[]): Promise<AccountState | null> {
    const holds = Object.fromEntries(group.map(({ requestId }) => [`holds.${requestId}.amount`, 1 as const]));
    const projection = { frozen: 1, available: 1, held: 1, openHolds: 1, ...holds } as const;
    return accounts.collection.findOne({ _id: account }, { projection }).catch(unavailable);
  }

  const refusedBefore = createRefusedAccounts();

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
    refusedBefore.remember(account, results.size > 0);
    for (const { hold, amountNanoUsd } of sized)
      if (!results.has(hold)) results.set(hold, { ok: true, heldNanoUsd: amountNanoUsd });
    return group.map((hold) => results.get(hold) as HoldResult | Error);
  }

  const commit = groupCommit<Hold, HoldResult>({
    limit: groupLimit,
    observe: observer?.writes.holds,
    write: writeGroup,
  });

  /** Throws `HoldUnknown` if the write may have taken effect, and 503 if MongoDB is unavailable and nothing is held. */
  async function hold(request: Hold): Promise<HoldResult> {
    assertRequestId(request.requestId);
    assertAmount(request.maxNanoUsd, "maxNanoUsd");
    assertAmount(request.minNanoUsd, "minNanoUsd");
    if (!Number.isSafeInteger(request.expiresAt)) throw new RangeError("expiresAt must be unix milliseconds");
    // No hold is sent while MongoDB is unavailable, so that no outcome is unknown and nothing has to be released.
    if (mongo.upSince() === undefined) await mongo.ping().catch(unavailable);
    return commit(request.account, request.requestId, request);
  }

  /** Throws 503 for money that leases may return later. */
  async function holdTwice(request: Hold): Promise<HoldResult> {
    const { account, minNanoUsd } = request;
    const isShort = (result: HoldResult, moreNanoUsd: bigint) =>
      !result.ok && result.reason === "insufficient" && result.availableNanoUsd + moreNanoUsd >= minNanoUsd;
    const result = await hold(request);
    if (result.ok || !isShort(result, result.heldNanoUsd)) return result;
    const [laterNanoUsd] = await Promise.all([recall(account).catch(unavailable), sleep(clock, returnMs)]);
    const again = await hold(request);
    if (isShort(again, laterNanoUsd)) throw onItsWay();
    return again;
  }

  /** Hold outcome unknown: settle at zero in the background. */
  function releaseUnknown({ kind, account, requestId, key, endpoint, model }: CallHold, heldNanoUsd: bigint): void {
    const signal = AbortSignal.timeout(releaseTimeoutMs);
    const call = { kind, account, requestId, key, endpoint, model, heldNanoUsd, totalMs: 0, signal };
    const released = release(call, { status: "failed", error: "no_capacity" });
    background.run("a hold with an unknown outcome could not be released; the sweeper will end it", released, {
      requestId,
    });
  }

  /**
   * Makes a hold for a waiting caller. Resolves to the amount held, or throws the error to respond with (402, 403, 429,
   * 503). A hold whose outcome is unknown is released in the background.
   */
  async function holdForCall(call: CallHold): Promise<bigint> {
    const result = await holdTwice(call).catch((error: unknown) => {
      if (!(error instanceof HoldUnknown)) throw error;
      releaseUnknown(call, error.heldNanoUsd);
      throw noCapacity("The balance could not be reached; nothing was charged.", 1, error);
    });
    if (result.ok) return result.heldNanoUsd;
    switch (result.reason) {
      case "frozen":
        throw accountFrozen();
      case "full": {
        const max = maxOpenHolds.toLocaleString("en");
        throw rateLimited(`This account has ${max} calls in flight, which is the maximum.`, 1);
      }
      case "insufficient":
        // A caller who has paid need not top up: another call of the same payment holds all of it, or has just ended.
        if (isPaymentAccount(call.account) && result.availableNanoUsd < unitNanoUsd)
          throw noCapacity("This payment is in use by another call of the same request. Repeat it as it is.", 1);
        throw insufficientBalance(call.insufficientText(result.availableNanoUsd));
    }
  }

  return { hold, holdForCall };
}

export const onItsWay = (): ServiceError =>
  noCapacity("Money of this account is on its way back from ended calls; nothing was charged. Repeat the call.", 1);

export function unavailable(cause: unknown): never {
  throw noCapacity("The balance cannot be reached right now; nothing was charged.", 1, cause);
}
