import { conflict, invalidValue, noCapacity, notFound, ServiceError } from "#errors";
import type { Clock } from "#platform/clock";
import { randomBase62 } from "#platform/ids";
import type { Logger } from "#platform/logger";
import type { Mongo } from "#platform/mongo";
import type { Accounts } from "./accounts.ts";
import { type EntryKind, type Ledger, type LedgerEntry, type StoredEntry, toEntry } from "./ledger.ts";
import { untilDone } from "./retry.ts";
import { maxNanoUsd } from "./usd.ts";

export interface Credit {
  /** Negative takes back. */
  readonly amountNanoUsd: bigint;
  /** 1 to 255 characters. The same key again changes nothing. */
  readonly idempotencyKey: string;
  readonly reason?: string | undefined;
}

export interface Moved {
  readonly entry: LedgerEntry;
  /** False if the entry stood before. */
  readonly created: boolean;
}

const refundable: ReadonlySet<EntryKind> = new Set(["usage", "storage"]);

/** Conflicts with running calls are tried again for so long. */
const transactionTimeoutMs = 15_000;

/** The rare movements: each one transaction of an account and an entry. */
export function createMovements(deps: { mongo: Mongo; accounts: Accounts; ledger: Ledger; clock: Clock; log: Logger }) {
  const { mongo, accounts, ledger, clock, log } = deps;

  /**
   * Whatever became of the transaction, the ledger tells: an entry of this id stands or not. So a lost answer to a
   * commit cannot make a second one.
   */
  async function move(entry: StoredEntry): Promise<Moved> {
    try {
      await transact(entry);
      return { entry: toEntry(entry), created: true };
    } catch (error) {
      const standing = (await ledger.standing([entry._id]).catch(away)).get(entry._id);
      if (standing) return { entry: toEntry(standing), created: standing.decider === entry.decider };
      if (error instanceof ServiceError) throw error;
      return away(error);
    }
  }

  function away(cause: unknown): never {
    throw noCapacity("The ledger cannot be written right now. Repeat the request as it is.", 1, cause);
  }

  /** The account first: the other order starves beside running calls. */
  const transact = (entry: StoredEntry): Promise<void> =>
    mongo.connection.withSession(async (session) => {
      const { account, amount } = entry;
      const enough = amount < 0n && { available: { $gte: -amount } };
      const options = { readConcern: { level: "snapshot" }, timeoutMS: transactionTimeoutMs } as const;
      await session.withTransaction(async () => {
        const change = { $inc: { available: amount } };
        const { matchedCount } = await accounts.model.updateOne({ _id: account, ...enough }, change, { session });
        if (matchedCount === 0) {
          if (!(await accounts.model.exists({ _id: account }).session(session))) throw notFound("account");
          throw conflict("More would be taken back than is available.");
        }
        await ledger.model.create([entry], { session });
      }, options);
    });

  const common = (account: string, amountNanoUsd: bigint) => ({
    account,
    amount: amountNanoUsd,
    createdAt: new Date(clock.now()),
    decider: randomBase62(12),
  });

  async function credit(account: string, { amountNanoUsd, idempotencyKey, reason }: Credit): Promise<Moved> {
    if (idempotencyKey.length < 1 || idempotencyKey.length > 255)
      throw invalidValue("idempotency_key", "idempotency_key must have 1 to 255 characters.");
    if (amountNanoUsd === 0n || amountNanoUsd > maxNanoUsd || amountNanoUsd < -maxNanoUsd)
      throw invalidValue("amount_usd", "amount_usd is zero or out of range.");
    const moved = await move({
      _id: `credit:${account}:${idempotencyKey}`,
      kind: amountNanoUsd > 0n ? "credit" : "adjustment",
      ...common(account, amountNanoUsd),
      idempotencyKey,
      ...(reason !== undefined && { reason }),
    });
    if (moved.entry.amountNanoUsd !== amountNanoUsd)
      throw conflict("This idempotency_key was used with another amount.");
    return moved;
  }

  /** Gives the whole cost of a call back, once. Tries until it is done: nobody asks for it a second time. */
  async function refund(account: string, requestId: string): Promise<LedgerEntry> {
    const refunded = await untilDone(clock, undefined, () => refundOnce(account, requestId).catch(orRefusal));
    if (refunded instanceof ServiceError) throw refunded;
    return refunded;

    function orRefusal(error: unknown): ServiceError {
      if (error instanceof ServiceError && error.status === 404) return error;
      log.warn({ err: error, account, requestId }, "a call is not refunded yet");
      throw error;
    }
  }

  async function refundOnce(account: string, requestId: string): Promise<LedgerEntry> {
    const call = (await ledger.standing([requestId])).get(requestId);
    if (!call || !refundable.has(call.kind) || call.account !== account) throw notFound("request");
    const { entry } = await move({ _id: `refund:${requestId}`, kind: "refund", ...common(account, -call.amount) });
    return entry;
  }

  return { credit, refund };
}
