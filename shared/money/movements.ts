import { conflict, invalidValue, noCapacity, notFound, ServiceError } from "#errors";
import { retry } from "#platform/concurrency/retry";
import { randomBase62 } from "#platform/ids";
import { isDuplicate } from "#platform/mongo/connection";
import type { Account, Accounts } from "./accounts.ts";
import type { MoneyDeps } from "./deps.ts";
import { type EntryKind, type LedgerEntry, refundOf, type StoredEntry, toEntry } from "./ledger.ts";
import { isPaymentAccount, paymentAccount } from "./payment-accounts.ts";
import type { CountTags } from "./usage/month-tags.ts";
import { maxInt64 } from "./usd.ts";

/** A credit, adjustment, refund or payout. */
export interface Movement {
  readonly entry: LedgerEntry;
  /** Is false if the entry already existed. */
  readonly created: boolean;
}

export interface Credit {
  /** A negative amount is taken back. */
  readonly amountNanoUsd: bigint;
  /** 1 to 255 characters. Repeating a key changes nothing. */
  readonly idempotencyKey: string;
  readonly reason?: string | undefined;
}

/** A settled payment. It opens its own account and is its credit. */
export interface Payment {
  /** Names the account. */
  readonly memo: string;
  /** The hash of the transaction's message, by which the same payment never counts twice. */
  readonly messageHash: string;
  readonly nanoUsd: bigint;
  /** The signature on chain. */
  readonly transaction: string;
  readonly buybackToken?: string | undefined;
}

/** A payment on chain to an existing account. */
export interface Receipt {
  readonly nanoUsd: bigint;
  /** The signature. The caller must ensure that the transaction counts for no other account. */
  readonly transaction: string;
}

/** A payment back to a payer on chain. */
export interface Payout {
  readonly nanoUsd: bigint;
  readonly transaction: string;
  readonly reason?: string | undefined;
}

type NewMovement = Omit<StoredEntry, "createdAt" | "decider"> & Partial<Pick<StoredEntry, "createdAt">>;

type NewAccount = ReturnType<Accounts["opened"]>;

/** Matches a duplicate key error of a ledger index. */
const inLedger = /[.]ledger index/;
const backoff = { firstMs: 20, maxMs: 1_000 };
const refundable: ReadonlySet<EntryKind> = new Set(["usage", "storage"]);

/** Movements that are rare. Each is one transaction of an account and an entry. */
export function createMovements(deps: MoneyDeps & { countTags: CountTags }) {
  const { mongo, accounts, ledger, countTags, clock, log } = deps;

  /**
   * The entry's id in the ledger shows whether the transaction took effect, so a lost response to a commit cannot cause
   * a second movement.
   */
  async function record(movement: NewMovement, opened?: NewAccount): Promise<Movement> {
    const entry = { createdAt: new Date(clock.now()), ...movement, decider: randomBase62(12) };
    try {
      await transact(entry, opened);
      return { entry: toEntry(entry), created: true };
    } catch (error) {
      const existing = await ledger.readLatest(entry).catch(unavailable);
      if (existing) return { entry: toEntry(existing), created: existing.decider === entry.decider };
      if (error instanceof ServiceError) throw error;
      if (isDuplicate(error) && inLedger.test((error as Error).message))
        throw conflict("This movement is already recorded for another account.");
      return unavailable(error);
    }
  }

  /** The account is updated first, because in the reverse order the transaction starves alongside running calls. */
  const transact = (entry: StoredEntry, opened: NewAccount | undefined): Promise<void> =>
    mongo.inTransaction(async (session) => {
      const { account, amount } = entry;
      const enough = amount < 0n && { available: { $gte: -amount } };
      const { matchedCount, upsertedCount } = await accounts.model.updateOne(
        { _id: account, ...enough },
        { $inc: { available: amount }, ...(opened && { $setOnInsert: opened }) },
        { session, upsert: opened !== undefined },
      );
      if (matchedCount + upsertedCount === 0) {
        if (!(await accounts.model.exists({ _id: account }).session(session))) throw notFound("account");
        throw conflict("The amount exceeds the available balance.");
      }
      await ledger.model.create([entry], { session });
    });

  /** Throws 404 for an unknown account, and 409 for a key used with another amount or an overdraft. */
  async function credit(account: string, { amountNanoUsd, idempotencyKey, reason }: Credit): Promise<Movement> {
    if (idempotencyKey.length < 1 || idempotencyKey.length > 255)
      throw invalidValue("idempotency_key", "idempotency_key must have 1 to 255 characters.");
    if (amountNanoUsd === 0n || amountNanoUsd > maxInt64 || amountNanoUsd < -maxInt64)
      throw invalidValue("amount_usd", "amount_usd is zero or out of range.");
    const movement = await record({
      _id: `credit:${account}:${idempotencyKey}`,
      kind: amountNanoUsd > 0n ? "credit" : "adjustment",
      account,
      amount: amountNanoUsd,
      idempotencyKey,
      ...(reason !== undefined && { reason }),
    });
    if (movement.entry.amountNanoUsd !== amountNanoUsd)
      throw conflict("This idempotency_key was used with another amount.");
    return movement;
  }

  /**
   * Credits the full cost of a captured call, once. Retries until it succeeds, because its callers do not repeat it.
   * Throws 404 for a request of another account.
   */
  const refund = (account: string, requestId: string): Promise<LedgerEntry> =>
    retry({ clock, backoff, retryIf: (error) => mayRefund(error, { account, requestId }) }, async () => {
      const call = (await ledger.readCommitted([{ _id: requestId, account }])).get(requestId);
      if (!call || !refundable.has(call.kind) || call.account !== account) throw notFound("request");
      const createdAt = new Date(clock.now());
      // It counts in its own month, in which other tags may have come first.
      const tags = call.countedTags ?? call.request?.tags;
      const countedTags = tags && [...(await countTags(account, createdAt, tags))];
      const { entry } = await record({
        _id: refundOf(requestId),
        kind: "refund",
        account,
        amount: -call.amount,
        createdAt,
        ...(countedTags && { countedTags }),
        // Its accrual is also reversed, even if a batch has claimed it.
        ...(call.buyback && { buyback: { token: call.buyback.token, nanoUsd: -call.buyback.nanoUsd, batch: null } }),
      });
      return entry;
    });

  async function refundedAmong(calls: readonly LedgerEntry[]): Promise<ReadonlySet<LedgerEntry>> {
    const charged = calls.filter(({ costNanoUsd }) => costNanoUsd > 0n);
    if (charged.length === 0) return new Set();
    const refunds = await ledger.readCommitted(charged.map(({ account, id }) => ({ _id: refundOf(id), account })));
    return new Set(charged.filter(({ id }) => refunds.has(refundOf(id))));
  }

  function mayRefund(error: unknown, call: { account: string; requestId: string }): boolean {
    if (error instanceof ServiceError && error.status === 404) return false;
    log.warn({ err: error, ...call }, "a call could not be refunded yet");
    return true;
  }

  /** Opens the account of a payment with its credit, once. Throws 409 if another account has the payment. */
  async function creditPayment(payment: Payment): Promise<Movement> {
    const { memo, messageHash, nanoUsd, transaction, buybackToken } = payment;
    const account = paymentAccount(memo);
    const opened = accounts.opened({ name: account, buybackToken });
    return record({ _id: messageHash, kind: "credit", account, amount: nanoUsd, transaction }, opened);
  }

  /** Credits what arrived on chain, once for each transaction. Throws 404 for an unknown account. */
  const creditReceipt = (account: string, { nanoUsd, transaction }: Receipt): Promise<Movement> =>
    record({ _id: `topup:${transaction}`, kind: "credit", account, amount: nanoUsd, transaction });

  /** Records a payment back on chain, once for each transaction. Throws 404, and 409 for more than is available. */
  async function recordPayout(account: string, { nanoUsd, transaction, reason }: Payout): Promise<Movement> {
    if (!isPaymentAccount(account)) throw notFound("payment");
    const movement = await record({
      _id: `payout:${account}:${transaction}`,
      kind: "payout",
      account,
      amount: -nanoUsd,
      transaction,
      ...(reason !== undefined && { reason }),
    });
    if (movement.entry.amountNanoUsd !== -nanoUsd) throw conflict("This transaction was recorded with another amount.");
    return movement;
  }

  /** Writes off the rest of a spent account and removes it, but not its entries. Returns false if it is in use. */
  async function removeSpentAccount({ id, availableNanoUsd }: Account): Promise<boolean> {
    if (availableNanoUsd > 0n)
      await record({
        _id: `writeoff:${id}`,
        kind: "adjustment",
        account: id,
        amount: -availableNanoUsd,
        reason: "less than one unit of the token",
      });
    const empty = { _id: id, available: 0n, held: 0n, openHolds: 0 };
    const { deletedCount } = await accounts.collection.deleteOne(empty);
    return deletedCount === 1;
  }

  return {
    /** Records a movement of another part of this module. */
    record,
    credit,
    refund,
    /** Returns the calls whose cost was refunded. */
    refundedAmong,
    creditPayment,
    creditReceipt,
    recordPayout,
    removeSpentAccount,
  };
}

function unavailable(cause: unknown): never {
  throw noCapacity("The ledger cannot be written right now. Repeat the request as it is.", 1, cause);
}
