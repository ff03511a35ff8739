import {
  type ExpiringKey,
  expiryDays,
  type KeyStore,
  periodAt,
  type WatchedBudget,
  type WatchedKey,
} from "#key-records";
import { type Account, formatUsd, type Money } from "#money";
import type { Payments } from "#payments";
import type { Uses } from "#platform/uses";
import type { NewEvent, Webhooks } from "#webhooks";

/**
 * The events of accounts, which follow from records: alerts of balances, budgets of keys, top-ups and expiring keys. Each
 * is recorded before its record notes that, so that a crash in between repeats it, and the same event is recorded once.
 */
interface AccountEventDeps extends Uses<"clock"> {
  readonly money: Pick<Money, "watchBalances" | "chargesOfKeys">;
  readonly keyStore: KeyStore;
  readonly webhooks: Pick<Webhooks, "record">;
}

const seconds = (time: Date | number) => Math.floor(Number(time) / 1_000);

function balanceLow({ id, availableNanoUsd, alertBelowNanoUsd, alertSince }: Account): NewEvent {
  const since = alertSince ?? new Date(0);
  const data = {
    id,
    object: "balance",
    available_usd: formatUsd(availableNanoUsd),
    alert_below_usd: formatUsd(alertBelowNanoUsd ?? 0n),
    alert: { since: seconds(since) },
  };
  const type = "balance.low" as const;
  return { account: id, type, objectId: id, occurrence: since.toISOString(), createdAt: since, data: () => data };
}

/** Begins and ends the alerts of balances. */
export const watchBalances = ({ money, webhooks }: AccountEventDeps): Promise<void> =>
  money.watchBalances(async (account) => {
    await webhooks.record(balanceLow(account));
  });

type Topup = Parameters<Parameters<NonNullable<Payments["topups"]>["creditArrived"]>[1] & object>[1];

/** A top-up is completed by its first payment. */
export function topupCompleted(account: string, topup: Topup, at: Date): NewEvent {
  const { id, status, nanoUsd, receivedNanoUsd, transaction, createdAt, expiresAt } = topup;
  const data = {
    id,
    object: "topup",
    status,
    amount_usd: formatUsd(nanoUsd),
    received_usd: formatUsd(receivedNanoUsd),
    transaction: transaction ?? null,
    created_at: seconds(createdAt),
    expires_at: seconds(expiresAt),
  };
  return { account, type: "topup.completed", objectId: id, createdAt: at, data: () => data };
}

const shownKey = ({ id, name, prefix }: Pick<ExpiringKey, "id" | "name" | "prefix">) => ({
  id,
  object: "key" as const,
  name,
  prefix,
});

function keyExpiring(key: ExpiringKey, days: number, createdAt: Date): NewEvent {
  const { account, id, expiresAt } = key;
  const data = { ...shownKey(key), expires_at: seconds(expiresAt), days };
  const occurrence = `${expiresAt.toISOString()} ${days}`;
  return { account, type: "key.expiring", objectId: id, occurrence, createdAt, data: () => data };
}

/** Announces keys seven days and one day before they expire. */
export async function watchKeyExpiry({ keyStore, webhooks, clock }: AccountEventDeps): Promise<void> {
  for (const days of expiryDays)
    for (const key of await keyStore.expiringWithin(days)) {
      await webhooks.record(keyExpiring(key, days, new Date(clock.now())));
      await keyStore.noteAnnounced(key, days);
    }
}

const thresholds = [80, 100] as const;
/** Bounds the work after a long time without maintenance. */
const maxPeriods = 10;

interface Spending {
  readonly from: number;
  readonly until: number | undefined;
  readonly spentNanoUsd: bigint;
}

function budgetThreshold(owner: WatchedBudget, period: Spending, percent: number, createdAt: Date): NewEvent {
  const { from, until, spentNanoUsd } = period;
  const { account, id, budget } = owner;
  const data = {
    ...shownKey(owner),
    budget: {
      limit_usd: formatUsd(budget.limitNanoUsd),
      period: budget.period,
      spent_usd: formatUsd(spentNanoUsd),
      resets_at: until === undefined ? null : seconds(until),
    },
    threshold_percent: percent,
  };
  const occurrence = `${from} ${budget.limitNanoUsd} ${percent}`;
  return { account, type: "budget.threshold", objectId: id, occurrence, createdAt, data: () => data };
}

/** The spending of the keys that share a budget, and whether they have open calls. */
async function spendingSince({ money, keyStore }: AccountEventDeps, owner: WatchedBudget, from: number) {
  const since = new Date(from);
  const keys = [owner.id, ...(await keyStore.sharing(owner.account, owner.id, since))];
  return money.chargesOfKeys(owner.account, keys, since);
}

/** The spending of the current period, and of those in which calls may have ended that were not looked at; the oldest first. */
async function spendingOf(
  deps: AccountEventDeps,
  owner: WatchedBudget,
  since: number,
  now: number,
): Promise<Spending[]> {
  const { period } = owner.budget;
  const found: Spending[] = [];
  let laterNanoUsd = 0n;
  for (let at = now; found.length < maxPeriods; ) {
    const { from, until } = periodAt(period, at);
    const { spentNanoUsd } = await spendingSince(deps, owner, from);
    found.unshift({ from, until, spentNanoUsd: spentNanoUsd - laterNanoUsd });
    if (from <= since) break;
    laterNanoUsd = spentNanoUsd;
    at = from - 1;
  }
  return found;
}

/** Records the thresholds that have been reached. `since`: everything before has been looked at. */
async function watchBudget(deps: AccountEventDeps, owner: WatchedBudget, since: number): Promise<void> {
  const { keyStore, webhooks, clock } = deps;
  const { limitNanoUsd } = owner.budget;
  const now = clock.now();
  const known = owner.reached?.limitNanoUsd === limitNanoUsd ? owner.reached : undefined;
  for (const period of await spendingOf(deps, owner, since, now)) {
    const { from, spentNanoUsd } = period;
    if (from < (known?.from ?? 0)) continue;
    let percent = known?.from === from ? known.percent : 0;
    for (const threshold of thresholds)
      if (threshold > percent && spentNanoUsd * 100n >= limitNanoUsd * BigInt(threshold)) {
        await webhooks.record(budgetThreshold(owner, period, threshold, new Date(now)));
        percent = threshold;
      }
    await keyStore.noteReached(owner.account, owner.id, { from, limitNanoUsd, percent });
  }
}

/** Looks at the budgets that recently used keys may use up. */
export async function watchBudgets(deps: AccountEventDeps): Promise<void> {
  const { keyStore, money, clock } = deps;
  const due = await keyStore.takeBudgetsDue();
  const owners = new Map<string, { account: string; since: number }>();
  for (const { account, since, budgetOwners } of due)
    for (const id of budgetOwners)
      owners.set(id, { account, since: Math.min(since, owners.get(id)?.since ?? Number.POSITIVE_INFINITY) });
  for (const [id, { account, since }] of owners) {
    const owner = await keyStore.watchedBudget(account, id);
    if (owner) await watchBudget(deps, owner, since);
  }
  const isIdle = async ({ account, id }: WatchedKey) =>
    (await money.chargesOfKeys(account, [id], new Date(clock.now()))).open.length === 0;
  for (const key of due) if (await isIdle(key)) await keyStore.endBudgetWatch(key);
}
