/**
 * Balances, the holds of running calls, and every movement. Owns the collections `accounts`, `ledger`, `checkpoints`,
 * `sweptLeases`, `apiInstances`, `archives`, `archivedSums`, `restores`, `restoredEntries`, `usageHours`, `usageHourStates`,
 * `usageDays`, `usageDayStates` and `keyMonths`, and the prefix `ledger/` of object storage.
 *
 * A text call takes its hold out of a **lease**, a hold that many calls of an account share (`leases`), and is one write:
 * its decision. Any other paid call is three writes of one document each: **hold** the most that it can cost, **decide** what it did cost
 * (the insert into the ledger is the decision: the first wins), **apply** that to the balance (once, by its filter). A
 * process may die between any two of them: the sweeper ends what remains. Writes that arrive together are grouped.
 * Credits, adjustments, refunds and payouts are transactions. A payment on chain opens an account of its own,
 * `x402:<memo>`, whose credit has the hash of the payment's message as its id; its balance may be paid back to the payer.
 *
 * Amounts are bigint, in nano-USD (10^-9 USD), Int64 in the database. A balance is never negative.
 */
import { createBackground } from "#platform/background";
import type { Clock } from "#platform/clock";
import { scatter } from "#platform/collection";
import type { Logger } from "#platform/logger";
import type { Mongo } from "#platform/mongo";
import { createAccounts } from "./accounts.ts";
import { type BuybackTerms, createAccruals } from "./accruals.ts";
import { type ArchiveSizes, createArchive } from "./archive/archive.ts";
import type { ArchiveObjects } from "./archive/objects.ts";
import { createArchiveParts } from "./archive/parts.ts";
import { createArchivedSums } from "./archive/sums.ts";
import { createBalanceAlerts } from "./balance-alerts.ts";
import { createCheck } from "./check.ts";
import { createCheckpoints } from "./checkpoints.ts";
import { createFindAnswer } from "./find-answer.ts";
import { createFindCalls } from "./find-calls.ts";
import { createHoldList } from "./hold-list.ts";
import { createHold } from "./holds.ts";
import { createKeyUsage } from "./usage/key-usage.ts";
import type { Recalls, Registration } from "./leases/lease.ts";
import { createLeaseClosing } from "./leases/closing.ts";
import { createLeases } from "./leases/leases.ts";
import { createLedger } from "./ledger.ts";
import { createMovements } from "./movements.ts";
import type { MoneyObserver } from "./observer.ts";
import { createOpenHolds } from "./open-holds.ts";
import { createPaymentAccounts } from "./payment-accounts.ts";
import { pendingCosts } from "./pending-costs.ts";
import { createRestoredEntries } from "./archive/restored-entries.ts";
import {
  createApply,
  createDecide,
  type Decided,
  type Decision,
  type ReleasedCall,
  type ReleaseReason,
  releaseDecision,
} from "./settle.ts";
import { createSweep } from "./sweep.ts";
import { createUndelivered } from "./undelivered.ts";
import { createUsageDays } from "./usage/days.ts";

export type { Account, AccountPatch, Page } from "./accounts.ts";
export type { Accrued, BuybackTerms, Claimable } from "./accruals.ts";
export { archivableMs } from "./archive/archive.ts";
export { type ArchiveObjects, createArchiveObjects } from "./archive/objects.ts";
export type { ArchivedMonth } from "./archive/parts.ts";
export { type Attempt, type AttemptOutcome, attemptOutcomes } from "./attempts.ts";
export type { CallPage, CallQuery } from "./find-calls.ts";
export type { ListedHold } from "./hold-list.ts";
export { type CallHold, type Hold, type HoldResult, HoldUnknown } from "./holds.ts";
export type { KeyUsage } from "./usage/key-totals.ts";
export type { Leased, Recalls, Registration } from "./leases/lease.ts";
export { decidableMs } from "./leases/closing.ts";
export type { Leases } from "./leases/leases.ts";
export {
  type EntryKind,
  entryKinds,
  type LedgerEntry,
  type RequestRecord,
  statuses as requestStatuses,
} from "./ledger.ts";
export { moneySchema } from "./migrations.ts";
export type { Movement, Payout } from "./movements.ts";
export type { MoneyObserver } from "./observer.ts";
export { isPaymentAccount, paymentAccount, unitNanoUsd } from "./payment-accounts.ts";
export { createRecalls } from "./leases/return-requests.ts";
export type { RestoreState } from "./archive/restored-entries.ts";
export type { Decided, Decision, ReleasedCall, ReleaseReason } from "./settle.ts";
export type { DeliveryNote } from "./undelivered.ts";
export { dayOf, daysLater } from "./usage/dates.ts";
export { type UsageGroup, type UsageRow, usageGroups } from "./usage/views.ts";
export { formatUsd, parseUsd } from "./usd.ts";

export type Money = ReturnType<typeof createMoney>;

export type Archive = ReturnType<Money["createArchive"]>;

interface ArchiveSettings {
  readonly objects: ArchiveObjects;
  /** Absent: nothing is archived. */
  readonly retentionDays: number | undefined;
  readonly sizes?: ArchiveSizes | undefined;
}

export function createMoney(deps: {
  mongo: Mongo;
  /** Absent: nothing accrues. */
  buyback?: BuybackTerms | undefined;
  observer?: MoneyObserver | undefined;
  clock: Clock;
  log: Logger;
}) {
  const { mongo, buyback, observer, clock, log } = deps;
  const background = createBackground({ log });
  const accounts = createAccounts({ mongo, clock });
  const ledger = createLedger({ mongo });
  const checkpoints = createCheckpoints({ mongo, ledger });
  const usageDays = createUsageDays({ mongo, ledger, clock });
  const { decide, decideOnce, shortfalls } = createDecide({ ledger, buyback, observer, clock, log });
  const { apply, applyOnce } = createApply({ accounts, observer, clock, log });
  const parts = createArchiveParts({ mongo, clock });
  const archivedSums = createArchivedSums({ mongo, ledger });
  const restored = createRestoredEntries({ mongo, parts, clock });
  const { closeLease, closeOwnLease, applyLateCosts, findSwept } = createLeaseClosing({
    mongo,
    accounts,
    ledger,
    observer,
    clock,
    log,
  });

  const movements = createMovements({ mongo, accounts, ledger, clock, log });

  /** Decides, then applies the entry that counts. */
  async function settle(decision: Decision): Promise<Decided> {
    const decided = await decide(decision);
    const { account, requestId, heldNanoUsd, lease, signal } = decision;
    const { costNanoUsd } = decided.entry;
    // The costs of a lease are applied when it is closed.
    if (lease === undefined) await apply({ account, requestId, heldNanoUsd, costNanoUsd, signal });
    return decided;
  }

  /** Settles at zero a call that is not charged. An earlier entry keeps its cost. */
  const release = (call: ReleasedCall, reason: ReleaseReason) => settle(releaseDecision(call, reason));

  return {
    ...createHold({ accounts, mongo, release, background, observer, clock, log }),
    decide,
    apply,
    settle,
    release,
    shortfalls,
    ...movements,
    ...createPaymentAccounts(accounts),
    ...createUndelivered({ mongo, ledger, refund: movements.refund, clock, log }),
    ...createAccruals({ ledger }),
    ...createKeyUsage({ mongo, accounts, ledger, totals: usageDays.totals, hours: usageDays.hours }),
    createAccount: accounts.create,
    account: accounts.find,
    accounts: accounts.list,
    searchAccounts: accounts.search,
    updateAccount: accounts.update,
    ledger: ledger.list,
    entry: ledger.entry,
    findEntry: ledger.findEntry,
    /** Calls by what they were; one that still runs has no entry yet. */
    findCalls: createFindCalls({ ledger }),
    ...createSweep({ mongo, accounts, ledger, clock, log, applyOnce, decideOnce, closeLease }),
    applyLateCosts,
    findAnswer: createFindAnswer(ledger),
    ...createBalanceAlerts({ accounts, clock }),
    /** For a worker: makes the usage of the last days. */
    sumUsage: usageDays.sumUsage,
    /** Usage by day, at most a minute old. */
    usage: usageDays.usage,
    usageOfKey: usageDays.totals.usageOfKey,
    /** For an API instance: the holds of its text calls. */
    createLeases: (instance: { readonly registration: Registration; readonly recalls: Recalls }) =>
      createLeases({ ...instance, accounts, ledger, mongo, closeOwnLease, observer, clock, log }),
    /** By account: credits less decided costs. */
    balances: async (ids: readonly string[]): Promise<ReadonlyMap<string, bigint>> => {
      const found = await accounts.holdsOf(ids);
      const costs = await pendingCosts(ledger, found);
      const pending = ({ holds }: (typeof found)[number]) =>
        Object.keys(holds).reduce((sum, id) => sum + (costs.get(id) ?? 0n), 0n);
      return new Map(found.map((each) => [each._id, each.available + each.held - pending(each)]));
    },
    openHolds: createOpenHolds({ accounts, ledger, clock }),
    listHolds: createHoldList({ accounts }),
    check: createCheck({ mongo, accounts, ledger, checkpoints, archivedSums, clock, log }),
    /** About how many there are, payment accounts too: from metadata. */
    countAccounts: () => accounts.collection.estimatedDocumentCount(scatter("check")),
    checkpoint: checkpoints.checkpoint,
    /** What is in the archive, and what of it is restored. */
    archives: {
      list: parts.listMonths,
      find: parts.sumMonth,
      restoreStates: restored.states,
      restore: restored.request,
      removeRestored: restored.requestRemoval,
      restoredEntry: restored.entry,
      restoredEntries: restored.list,
    },
    /** For a worker: moves old entries to storage, and restores them. */
    createArchive({ objects, retentionDays, sizes }: ArchiveSettings) {
      const { run, read } = createArchive({
        mongo,
        accounts,
        ledger,
        parts,
        sums: archivedSums,
        findSwept,
        objects,
        sumUsage: usageDays.sumUsage,
        retentionDays,
        sizes,
        clock,
        log,
      });
      return { run, restore: (signal?: AbortSignal) => restored.work(read, signal) };
    },
    /** Resolves once no release is running in the background: wait for it before MongoDB closes. At most two minutes. */
    settled: () => background.settled(),
  };
}
