/**
 * Who has how much, what is held for running calls, and every movement. Owns the collections `accounts`,
 * `ledger` and `checkpoints`.
 *
 * A paid call is three writes of one document each: **hold** the most that it can cost, **decide** what it did cost
 * (the insert into the ledger is the decision: the first wins), **apply** that to the balance (once, by its filter).
 * Between any two of them a process may die: the sweeper ends what is left. What arrives together is written together.
 * Credits, adjustments and refunds are transactions. A payment on chain opens an account of its own, `x402:<memo>`, whose
 * credit has the hash of the payment's message as its id; what is left there is owed to the payer.
 *
 * Amounts are bigint, in nano-USD (10^-9 USD), Int64 in the database. A balance is never negative.
 */
import { createBackground } from "#platform/background";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { Mongo } from "#platform/mongo";
import { type Account, type AccountPatch, createAccounts, type Page } from "./accounts.ts";
import type { BuybackTerms } from "./accrual.ts";
import { type Accrued, type Claimable, createAccruals } from "./accruals.ts";
import { type Application, createApply } from "./apply.ts";
import { type Check, createCheck } from "./check.ts";
import { createCheckpoints } from "./checkpoints.ts";
import { createDecide, type Decided, type Decision, type ReleasedCall, type ReleaseReason } from "./decide.ts";
import { createHold, type Hold, type HoldAnswer } from "./holds.ts";
import { createLedger, type EntryKind, type LedgerEntry } from "./ledger.ts";
import { createMove, type Moved } from "./move.ts";
import { type Credit, createMovements } from "./movements.ts";
import { createPaymentAccounts, type Owed, type Payment, type Payout } from "./payment-accounts.ts";
import { createSweep, type Swept } from "./sweep.ts";
import { createTake, type Take } from "./take.ts";

export type { Account, AccountPatch, Page } from "./accounts.ts";
export type { BuybackTerms } from "./accrual.ts";
export type { Accrued, Claimable } from "./accruals.ts";
export type { Check } from "./check.ts";
export type { Decided, Decision, ReleasedCall, ReleaseReason } from "./decide.ts";
export { type Hold, type HoldAnswer, HoldUnknown } from "./holds.ts";
export { type Accrual, type EntryKind, entryKinds, type LedgerEntry, type RequestRecord } from "./ledger.ts";
export type { Moved } from "./move.ts";
export type { Credit } from "./movements.ts";
export {
  isPaymentAccount,
  type Owed,
  type Payment,
  type Payout,
  paymentAccount,
  unitNanoUsd,
} from "./payment-accounts.ts";
export type { Take } from "./take.ts";
export { formatUsd, parseUsd } from "./usd.ts";

export interface Money {
  /** Makes collections and indexes. Any number of processes may do it at once. */
  prepare(): Promise<void>;

  /**
   * Takes the most that a call can cost out of what is available. Throws `HoldUnknown` if nobody can say whether it
   * was taken (then settle 0 with its `heldNanoUsd`), and 503, with nothing taken, while MongoDB is away.
   */
  hold(hold: Hold): Promise<HoldAnswer>;
  /**
   * `hold` for a caller who waits: resolves with what is held, or throws the error to answer (402, 403, 429, 503). A hold
   * of unknown fate is decided 0 behind its back. A balance that only waits for a call to be applied gets a moment.
   */
  take(ask: Take): Promise<bigint>;
  /** Tries until a decision stands, this one or an earlier one. Rejects with the reason of `signal`. */
  decide(decision: Decision): Promise<Decided>;
  /** Ends the hold with the cost of the entry that stands. Tries until it is done; doing it again changes nothing. */
  apply(application: Application): Promise<void>;
  /** Decides, then applies what stands. */
  settle(decision: Decision): Promise<Decided>;
  /** Settles at zero a call that is not charged. An entry that already stands keeps its cost. */
  release(call: ReleasedCall, reason: ReleaseReason): Promise<Decided>;
  /** Calls since this process started that cost more than was held. Should be 0. */
  shortfalls(): number;

  /** Throws 404 for an account that is not there, 409 for a key used with another amount, or more than is available. */
  credit(account: string, credit: Credit): Promise<Moved>;
  /** Gives the whole cost of a decided call back, once; tries until it is done. 404 for a request that is not the account's. */
  refund(account: string, requestId: string): Promise<LedgerEntry>;

  /** Opens the account of a payment with its credit, once. 409 if the same payment was credited to another. */
  payIn(payment: Payment): Promise<Moved>;
  /** Records what went back on chain, once for each transaction. 404, 409 for more than is available. */
  payOut(account: string, payout: Payout): Promise<Moved>;
  /** What lies available in payments' accounts that were opened before, leaving out what is too little to be paid. */
  owed(openedBefore: Date): Promise<Owed>;
  /** Them, in the order of their ids. */
  owedAccounts(openedBefore: Date, page: Page): Promise<Account[]>;
  /** Payments' accounts that nothing is owed from and no call holds anything in. */
  spentAccounts(openedBefore: Date, limit: number): Promise<Account[]>;
  /** Removes such an account; its entries stay. False: it is in use. */
  removeAccount(account: Account): Promise<boolean>;

  /** By token, what no batch has yet. */
  accrued(): Promise<Accrued[]>;
  /** Some entries of a token that no batch has. */
  claimable(token: string, limit: number): Promise<Claimable>;
  /** Gives entries to a batch that no other has; doing it again changes nothing. */
  claim(ids: readonly string[], batch: string): Promise<void>;

  createAccount(account: AccountPatch & { readonly name: string }): Promise<Account>;
  account(id: string): Promise<Account | undefined>;
  /** Newest first, at most `limit`. Throws 400 for an `after` that is not there. */
  accounts(page: Page): Promise<Account[]>;
  updateAccount(id: string, patch: AccountPatch): Promise<Account>;
  /** Newest first, at most `limit`. Throws 400 for an `after` that is not there. */
  ledger(account: string, page: Page & { readonly kind?: EntryKind | undefined }): Promise<LedgerEntry[]>;
  /** The entry of one call, once it is decided. */
  entry(requestId: string): Promise<LedgerEntry | undefined>;

  /**
   * Ends holds past their time: applies what is decided; decides 0 what is not `isWaiting` (or an hour overdue), but
   * not in the first minute after MongoDB came back.
   */
  sweep(isWaiting: (requestId: string) => Promise<boolean>): Promise<Swept>;
  /** Ends every hold of an account whose calls are all over or dead: with 0, or with what stands. */
  abandon(account: string): Promise<void>;
  /** From the checkpoints. `full` reads every entry instead, and compares the checkpoints with them. */
  check(options?: { readonly full?: boolean }): Promise<Check>;
  /** Counts entries into the checkpoints, some hundred thousand at most; resolves with how many. */
  checkpoint(signal?: AbortSignal): Promise<number>;

  /**
   * Resolves once no settlement of an unanswered hold is under way: wait for it before MongoDB closes. Each ends
   * within two minutes.
   */
  settled(): Promise<void>;
}

export function createMoney(deps: {
  mongo: Mongo;
  /** Without it nothing accrues. */
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
  const { move, common } = createMove({ mongo, accounts, ledger, clock });
  const { credit, refund } = createMovements({ move, common, ledger, clock, log });

  async function settle(decision: Decision): Promise<Decided> {
    const decided = await decide(decision);
    const { account, requestId, heldNanoUsd, signal } = decision;
    await apply({ account, requestId, heldNanoUsd, costNanoUsd: decided.entry.costNanoUsd, signal });
    return decided;
  }

  const release = (call: ReleasedCall, { status, error }: ReleaseReason): Promise<Decided> =>
    settle({ ...call, costNanoUsd: 0n, status, error, attempts: 0, usage: {}, estimated: false });

  return {
    async prepare() {
      await Promise.all([accounts.prepare(), ledger.prepare(), checkpoints.prepare()]);
    },
    hold,
    take: createTake({ hold, release, background, clock }),
    decide,
    apply,
    settle,
    release,
    shortfalls,
    credit,
    refund,
    ...createPaymentAccounts({ accounts, move, common, clock }),
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
