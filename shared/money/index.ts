/**
 * Balances, the holds of running calls, and every movement. Owns the collections `accounts`, `ledger` and `checkpoints`.
 *
 * A paid call is three writes of one document each: **hold** the most that it can cost, **decide** what it did cost
 * (the insert into the ledger is the decision: the first wins), **apply** that to the balance (once, by its filter). A
 * process may die between any two of them: the sweeper ends what remains. Writes that arrive together are grouped.
 * Credits, adjustments, refunds and payouts are transactions. A payment on chain opens an account of its own,
 * `x402:<memo>`, whose credit has the hash of the payment's message as its id; its balance may be paid back to the payer.
 *
 * Amounts are bigint, in nano-USD (10^-9 USD), Int64 in the database. A balance is never negative.
 */
import { createBackground } from "#platform/background";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { Mongo } from "#platform/mongo";
import { type Account, type AccountPatch, createAccounts, type Page } from "./accounts.ts";
import { type Accrued, type BuybackTerms, type Claimable, createAccruals } from "./accruals.ts";
import { type Check, createCheck } from "./check.ts";
import { createCheckpoints } from "./checkpoints.ts";
import { type CallHold, createHoldForCall } from "./hold-for-call.ts";
import { createHold, type Hold, type HoldResult } from "./holds.ts";
import { createLedger, type EntryKind, type LedgerEntry } from "./ledger.ts";
import { type Credit, createMovements, type Movement } from "./movements.ts";
import { createPaymentAccounts, type Payment, type Payout, type UnusedSum } from "./payment-accounts.ts";
import {
  type Application,
  createApply,
  createDecide,
  type Decided,
  type Decision,
  type ReleasedCall,
  type ReleaseReason,
  releaseDecision,
} from "./settle.ts";
import { createSweep, type Swept } from "./sweep.ts";

export type { Account, AccountPatch, Page } from "./accounts.ts";
export type { Accrued, BuybackTerms, Claimable } from "./accruals.ts";
export type { Check } from "./check.ts";
export type { CallHold } from "./hold-for-call.ts";
export { type Hold, type HoldResult, HoldUnknown } from "./holds.ts";
export { type Accrual, type EntryKind, entryKinds, type LedgerEntry, type RequestRecord } from "./ledger.ts";
export type { Credit, Movement } from "./movements.ts";
export { isPaymentAccount, type Payment, type Payout, paymentAccount, unitNanoUsd } from "./payment-accounts.ts";
export type { Decided, Decision, ReleasedCall, ReleaseReason } from "./settle.ts";
export { formatUsd, parseUsd } from "./usd.ts";

export interface Money {
  /** Makes collections and indexes. Any number of processes may do it at once. */
  prepare(): Promise<void>;

  /**
   * Holds the most that a call can cost. Throws `HoldUnknown` if the write may or may not have taken effect (then release
   * the call with its `heldNanoUsd`), and 503, with nothing held, while MongoDB is unavailable.
   */
  hold(hold: Hold): Promise<HoldResult>;
  /**
   * `hold` for a waiting caller: resolves with the amount held, or throws the error to answer (402, 403, 429, 503). A hold
   * whose outcome is unknown is released in the background. If another call's hold is about to return enough, it
   * tries once more after a moment.
   */
  holdForCall(call: CallHold): Promise<bigint>;
  /** Retries until there is a decision, this one or an earlier one. Rejects with the reason of `signal`. */
  decide(decision: Decision): Promise<Decided>;
  /** Ends the hold with the cost of the entry that counts. Retries until it is done; a second application changes nothing. */
  apply(application: Application): Promise<void>;
  /** Decides, then applies the entry that counts. */
  settle(decision: Decision): Promise<Decided>;
  /** Settles at zero a call that is not charged. An earlier entry keeps its cost. */
  release(call: ReleasedCall, reason: ReleaseReason): Promise<Decided>;
  /** How many calls cost more than was held, since this process started. Should be 0. */
  shortfalls(): number;

  /** Throws 404 for an unknown account, 409 for a key used with another amount, or more than is available. */
  credit(account: string, credit: Credit): Promise<Movement>;
  /** Credits the whole cost of a decided call, once; retries until it is done. 404 for a request of another account. */
  refund(account: string, requestId: string): Promise<LedgerEntry>;

  /** Opens the account of a payment with its credit, once. 409 if the same payment was credited to another. */
  creditPayment(payment: Payment): Promise<Movement>;
  /** Records what was paid back on chain, once for each transaction. 404, 409 for more than is available. */
  recordPayout(account: string, payout: Payout): Promise<Movement>;
  /** What is available on payment accounts opened before a date, without amounts too small to be paid back. */
  sumUnused(openedBefore: Date): Promise<UnusedSum>;
  /** The same accounts, in the order of their ids. */
  unusedAccounts(openedBefore: Date, page: Page): Promise<Account[]>;
  /** Payment accounts with nothing to pay back and no open hold. */
  spentAccounts(openedBefore: Date, limit: number): Promise<Account[]>;
  /** Writes off the rest of such an account and removes it; its entries stay. False: it is in use. */
  removeSpentAccount(account: Account): Promise<boolean>;

  /** By token, the accruals that are in no batch. */
  accrued(): Promise<Accrued[]>;
  /** Some entries of a token that are in no batch. */
  claimable(token: string, limit: number): Promise<Claimable>;
  /** Puts entries that are in no batch into this one; a second claim changes nothing. */
  claim(ids: readonly string[], batch: string): Promise<void>;

  createAccount(account: AccountPatch & { readonly name: string }): Promise<Account>;
  account(id: string): Promise<Account | undefined>;
  /** Newest first, without payment accounts. Throws 400 for an unknown `after`. */
  accounts(page: Page): Promise<Account[]>;
  updateAccount(id: string, patch: AccountPatch): Promise<Account>;
  /** Newest first. Throws 400 for an unknown `after`. */
  ledger(account: string, page: Page & { readonly kind?: EntryKind | undefined }): Promise<LedgerEntry[]>;
  /** The entry of one call, once it is decided. */
  entry(requestId: string): Promise<LedgerEntry | undefined>;

  /**
   * Ends expired holds: applies what is decided; settles at zero what is not `isPending` (or an hour overdue), but not in
   * the first minute after MongoDB came back.
   */
  sweep(isPending: (requestId: string) => Promise<boolean>): Promise<Swept>;
  /** Releases all holds of an account that has no running call. Throws 503 while MongoDB is unavailable. */
  releaseAll(account: string): Promise<void>;
  /** Compares balances with the checkpoints and the entries since. `full` also compares checkpoints with all entries. */
  check(options?: { readonly full?: boolean }): Promise<Check>;
  /** Counts entries into the checkpoints, some hundred thousand at most; resolves with how many. */
  checkpoint(signal?: AbortSignal): Promise<number>;

  /** Resolves once no release is running in the background: wait for it before MongoDB closes. At most two minutes. */
  settled(): Promise<void>;
}

export function createMoney(deps: {
  mongo: Mongo;
  /** Absent: nothing accrues. */
  buyback?: BuybackTerms | undefined;
  clock: Clock;
  log: Logger;
}): Money {
  const { mongo, buyback, clock, log } = deps;
  const background = createBackground({ log });
  const accounts = createAccounts({ mongo, clock });
  const ledger = createLedger({ mongo });
  const checkpoints = createCheckpoints({ mongo, ledger });
  const hold = createHold({ accounts, mongo, clock, log });
  const { decide, decideOnce, shortfalls } = createDecide({ ledger, buyback, clock, log });
  const { apply, applyOnce } = createApply({ accounts, clock, log });
  const { record, credit, refund } = createMovements({ mongo, accounts, ledger, clock, log });

  async function settle(decision: Decision): Promise<Decided> {
    const decided = await decide(decision);
    const { account, requestId, heldNanoUsd, signal } = decision;
    await apply({ account, requestId, heldNanoUsd, costNanoUsd: decided.entry.costNanoUsd, signal });
    return decided;
  }
  const release = (call: ReleasedCall, reason: ReleaseReason) => settle(releaseDecision(call, reason));

  return {
    async prepare() {
      await Promise.all([accounts.prepare(), ledger.prepare(), checkpoints.prepare()]);
    },
    hold,
    holdForCall: createHoldForCall({ hold, release, background, clock }),
    decide,
    apply,
    settle,
    release,
    shortfalls,
    credit,
    refund,
    ...createPaymentAccounts({ accounts, record, clock }),
    ...createAccruals({ ledger }),
    createAccount: accounts.create,
    account: accounts.find,
    accounts: accounts.list,
    updateAccount: accounts.update,
    ledger: ledger.list,
    entry: ledger.entry,
    ...createSweep({ mongo, accounts, ledger, clock, log, applyOnce, decideOnce }),
    check: createCheck({ mongo, accounts, ledger, checkpoints, clock, log }),
    checkpoint: checkpoints.checkpoint,
    settled: () => background.settled(),
  };
}
