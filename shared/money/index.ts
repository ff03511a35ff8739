/**
 * Balances, the holds of running calls, and every movement. Owns the collections `accounts`, `ledger`, `checkpoints`,
 * `checkpointBatches`, `sweptLeases`, `apiInstances`, `lostResponses`, `archives`, `archivedSums`, `restores`, `restoredEntries`, `usageHours`,
 * `usageHourStates`, `usageDays`, `usageDayStates`, `usageTags`, `usageTagHours`, `usageTagDays`, `keyMonths` and
 * `invoices`, and the prefix `ledger/` of object storage.
 *
 * A paid call is **held**, **captured** (the first insert into the ledger wins) and **settled** (docs/adr/0005). A text
 * call draws its hold from a **lease** (docs/adr/0012). `charge` captures and settles. A process may die between any two
 * writes; the sweeper ends what remains. A payment by x402 has its own account (docs/adr/0008).
 *
 * Amounts are bigint, in nano-USD (10^-9 USD), Int64 in the database. A balance is never negative.
 */
import { createBackground } from "#platform/concurrency/background";
import { scatter } from "#platform/mongo/collection";
import type { Uses } from "#platform/uses";
import { createAccountSums } from "./account-sums.ts";
import { createAccounts } from "./accounts.ts";
import { type BuybackTerms, createAccruals } from "./accruals.ts";
import { type ArchiveSizes, createArchive } from "./archive/archive.ts";
import type { ArchiveObjects } from "./archive/objects.ts";
import { createArchiveParts } from "./archive/parts.ts";
import { createRestoredEntries } from "./archive/restored-entries.ts";
import { createBalanceAlerts } from "./balance-alerts.ts";
import {
  type Capture,
  type Captured,
  createCapture,
  type ReleasedCall,
  type ReleaseReason,
  zeroCapture,
} from "./capture.ts";
import { createCheck } from "./check.ts";
import { createCheckpoints } from "./checkpoints.ts";
import type { MoneyDeps, MoneyObserver } from "./deps.ts";
import { createFindAnswer, createFindCalls } from "./find-calls.ts";
import { createHold } from "./holds.ts";
import { createInvoices } from "./invoices.ts";
import { createLeaseClosing } from "./leases/closing.ts";
import type { Registration } from "./leases/lease.ts";
import { createLeases } from "./leases/leases.ts";
import { createLongLeases } from "./leases/long-leases.ts";
import type { ReturnRequests } from "./leases/return-requests.ts";
import { createLedger } from "./ledger.ts";
import { createLostResponses } from "./lost-responses.ts";
import { createMovements } from "./movements.ts";
import { createOpenHolds } from "./open-holds.ts";
import { createPaymentAccounts } from "./payment-accounts.ts";
import { pendingCosts } from "./pending-costs.ts";
import { createSettle } from "./settle.ts";
import { createStatements } from "./statement.ts";
import { createSweep } from "./sweep.ts";
import { createUndelivered } from "./undelivered.ts";
import { createUsageDays } from "./usage/days.ts";
import { createFeeCredits } from "./usage/fee-credits.ts";
import { createKeyUsage } from "./usage/key-usage.ts";
import { createMonthTags } from "./usage/month-tags.ts";
import { withPrevious } from "./usage/previous.ts";

export { type Account, type BillingDetails, billingOf } from "./accounts.ts";
export type { Accrued, BuybackTerms, Claimable } from "./accruals.ts";
export { archivableMs } from "./archive/archive.ts";
export { type ArchiveObjects, createArchiveObjects } from "./archive/objects.ts";
export type { ArchivedMonth } from "./archive/parts.ts";
export type { RestoreState } from "./archive/restored-entries.ts";
export { type Attempt, type AttemptOutcome, attemptOutcomes } from "./attempts.ts";
export type { Capture, Captured, ReleasedCall, ReleaseReason } from "./capture.ts";
export type { MoneyObserver } from "./deps.ts";
export type { CallPage } from "./find-calls.ts";
export type { CallHold, Hold } from "./holds.ts";
export type { Invoice } from "./invoices.ts";
export { capturableMs } from "./leases/closing.ts";
export type { Leased, Registration } from "./leases/lease.ts";
export type { Leases } from "./leases/leases.ts";
export { longLeaseOf } from "./leases/long-leases.ts";
export { createReturnRequests, type ReturnRequests } from "./leases/return-requests.ts";
export {
  type ByokRecord,
  type EntryKind,
  entryKinds,
  type LedgerEntry,
  type RequestRecord,
  statuses as requestStatuses,
} from "./ledger.ts";
export type { LostResponse } from "./lost-responses.ts";
export { moneySchema } from "./migrations.ts";
export type { Movement, Payout } from "./movements.ts";
export { feeOf, listWithin } from "./own-key-fee.ts";
export { isPaymentAccount, paymentAccount, unitNanoUsd } from "./payment-accounts.ts";
export type { Statement, StatementLine } from "./statement.ts";
export type { DeliveryNote, Instances } from "./undelivered.ts";
export { dayOf, daysLater, firstShownHour, hourDays, hourOf, hoursLater } from "./usage/dates.ts";
export { maxLedgerCalls, maxLedgerDays } from "./usage/ledger-usage.ts";
export { maxMonthTags } from "./usage/month-tags.ts";
export { type ComparedRow, previousPeriod } from "./usage/previous.ts";
export { type ServiceUsageGroup, serviceUsageGroups } from "./usage/service-usage.ts";
export { type UsageGroup, type UsageRow, type UsageSums, usageGroups } from "./usage/views.ts";
export { formatUsd, parseUsd } from "./usd.ts";

export type Money = ReturnType<typeof createMoney>;

export type Archive = ReturnType<Money["createArchive"]>;

interface ArchiveSettings {
  readonly objects: ArchiveObjects;
  /** Nothing is archived if this is undefined. */
  readonly retentionDays: number | undefined;
  readonly sizes?: ArchiveSizes | undefined;
}

export function createMoney({
  buyback,
  observer,
  recoveryMs = 60_000,
  lostRefundsNanoUsd = 5_000_000_000n,
  ...platform
}: Uses<"mongo" | "clock" | "log"> & {
  /** Nothing accrues if this is undefined. */
  buyback?: BuybackTerms | undefined;
  observer?: MoneyObserver | undefined;
  /** The time after a recovery of MongoDB before calls of lost processes are ended. Must exceed 10 seconds. */
  recoveryMs?: number | undefined;
  /** Lost responses of one account and one death of an API instance are refunded up to this amount, then listed. */
  lostRefundsNanoUsd?: bigint | undefined;
}) {
  const background = createBackground(platform);
  const accounts = createAccounts(platform);
  const ledger = createLedger(platform);
  const deps: MoneyDeps = { ...platform, accounts, ledger, observer, recoveryMs };
  const checkpoints = createCheckpoints(deps);
  const usageDays = createUsageDays(deps);
  const countTags = createMonthTags(platform);
  const { capture, captureOnce, captureEarly } = createCapture({ ...deps, buyback, countTags });
  const { settle, settleOnce } = createSettle(deps);
  const parts = createArchiveParts(platform);
  /** The sum of each account's entries that are in the archive and no longer in the ledger. */
  const archivedSums = createAccountSums(platform.mongo, "archivedSums");
  const restored = createRestoredEntries({ ...platform, parts });
  const { closeLease, closeOwnLease, settleLateCosts, findSwept } = createLeaseClosing(deps);
  const { record, ...movements } = createMovements({ ...deps, countTags });
  const { refundLost, lostResponses } = createLostResponses({
    ...deps,
    limitNanoUsd: lostRefundsNanoUsd,
    refund: movements.refund,
  });

  /** Captures the cost, then settles the entry that counts. */
  async function charge(call: Capture): Promise<Captured> {
    const captured = await capture(call);
    const { account, requestId, heldNanoUsd, lease, signal } = call;
    const { costNanoUsd } = captured.entry;
    // The costs of a lease are settled when it is closed.
    if (lease === undefined) await settle({ account, requestId, heldNanoUsd, costNanoUsd, signal });
    return captured;
  }

  /** Settles an uncharged call at zero. An earlier entry keeps its cost. */
  const release = (call: ReleasedCall, reason: ReleaseReason) => charge(zeroCapture(call, reason));

  /** A process without leases refuses without asking those that have some. */
  let recall = async (_account: string): Promise<bigint> => 0n;

  return {
    ...createHold({ ...deps, release, recall: (account) => recall(account), background }),
    capture,
    captureEarly,
    settle,
    charge,
    release,
    ...movements,
    ...createPaymentAccounts(accounts),
    ...createUndelivered({ ...deps, refundLost }),
    lostResponses,
    ...createAccruals(deps),
    ...createKeyUsage({ ...deps, totals: usageDays.totals, hours: usageDays.hours }),
    createAccount: accounts.create,
    account: accounts.find,
    /** Those that exist, in no order. */
    accountsOf: accounts.findSeveral,
    accounts: accounts.list,
    searchAccounts: accounts.search,
    richestAccounts: accounts.richest,
    updateAccount: accounts.update,
    setBilling: accounts.setBilling,
    ledger: ledger.list,
    entry: ledger.entry,
    findEntry: ledger.findEntry,
    modelsOf: ledger.modelsOf,
    /** Finds calls by their properties. A call that is still running has no entry yet. */
    findCalls: createFindCalls(deps),
    ...createSweep({ ...deps, settleOnce, captureOnce, closeLease }),
    settleLateCosts,
    ...createLongLeases(deps),
    closeLease: (account: string, lease: string) => closeLease(account, lease),
    findAnswer: createFindAnswer(deps),
    ...createBalanceAlerts(deps),
    /** Computes the usage of the last days. Used by workers. */
    sumUsage: usageDays.sumUsage,
    /** Credits the fees of calls with own provider keys, up to an allowance of a month. Used by workers. */
    creditFees: createFeeCredits(deps, { record }, usageDays.collections),
    /** Usage by day or hour, at most a minute old. Throws 400 if there are too many rows for the times that were asked for. */
    usage: usageDays.usage,
    /** The same beside that of the period before. */
    usageWithPrevious: withPrevious(usageDays.usage),
    /** Usage by day, model and account with the margin, of all accounts or of some, at most a minute old. */
    usageOfService: usageDays.ofService,
    usageOfKey: usageDays.totals.usageOfKey,
    /** The balance of an account from day to day: credits one by one, and the refunds and charges of each day. */
    statement: createStatements(deps, usageDays.usage),
    /** The invoice of a month, with number and parties once it is final. */
    invoice: createInvoices({ ...deps, lastClosedDay: usageDays.lastClosed, usage: usageDays.usage }),
    /** The holds of an API instance's text calls. */
    createLeases(instance: { readonly registration: Registration; readonly returnRequests: ReturnRequests }) {
      const leases = createLeases({ ...deps, ...instance, closeOwnLease });
      recall = (account) => leases.recall(account);
      return leases;
    },
    /** Returns credits minus captured costs, by account. */
    balances: async (ids: readonly string[]): Promise<ReadonlyMap<string, bigint>> => {
      const found = await accounts.holdsOf(ids);
      const costs = await pendingCosts(ledger, found);
      const pending = ({ holds }: (typeof found)[number]) =>
        Object.keys(holds).reduce((sum, id) => sum + (costs.get(id) ?? 0n), 0n);
      return new Map(found.map((each) => [each._id, each.available + each.held - pending(each)]));
    },
    ...createOpenHolds(deps),
    check: createCheck({ ...deps, checkpoints, archivedSums }),
    /** An estimate from metadata, including payment accounts. */
    countAccounts: () => accounts.collection.estimatedDocumentCount(scatter("check")),
    checkpoint: checkpoints.checkpoint,
    /** The archive and its restored months. */
    archives: {
      list: parts.listMonths,
      find: parts.sumMonth,
      restoreStates: restored.states,
      restore: restored.request,
      removeRestored: restored.requestRemoval,
      restoredEntry: restored.entry,
      restoredEntries: restored.list,
    },
    /** Moves old entries to storage and restores them. Used by workers. */
    createArchive({ objects, retentionDays, sizes }: ArchiveSettings) {
      const { sumUsage } = usageDays;
      const archive = { parts, sums: archivedSums, findSwept, objects, sumUsage, retentionDays, sizes };
      const { run, read } = createArchive({ ...deps, ...archive });
      return { run, restore: (signal?: AbortSignal) => restored.work(read, signal) };
    },
    /** Resolves once no release is running in the background, within two minutes. MongoDB must stay open until then. */
    settled: () => background.settled(),
  };
}
