import { budgetExceeded, noCapacity } from "#errors";
import { type KeyStore, periodAt } from "#key-records";
import { formatUsd, type Money } from "#money";
import { sleep } from "#platform/clock";
import { randomBase62 } from "#platform/ids";
import type { Uses } from "#platform/uses";
import type { BudgetState, createLimits, Quota, QuotaBudget } from "./limits.ts";

/** Other instances wait this long for one that is counting, then count themselves. */
const countLeaseMs = 5_000;
const countPollMs = 20;
const countTimeoutMs = 10_000;
/** Gives the ends of finished calls time to reach Redis. */
const pausesMs = [50, 100];
/** Minimum interval between lookups of one key's open calls in the ledger. */
const endEveryMs = 1_000;
const maxRemembered = 1_000;

type BudgetedQuota = Quota & { readonly budget: QuotaBudget; readonly isShared?: boolean };
export const hasBudget = (quota: Quota): quota is BudgetedQuota => quota.budget !== undefined;

/**
 * Quotas for the budgets of other keys. Each budget is on the Redis shard of its own key, so separate scripts, which count
 * nothing else, take and end its calls.
 */
export const sharedQuotas = ({ sharedBudgets = [] }: Quota): BudgetedQuota[] =>
  sharedBudgets.map((budget) => ({
    name: `{${budget.keyId}}:shared`,
    requestsPerMinute: 1,
    tokensPerMinute: 1,
    concurrentRequests: 1,
    budget,
    isShared: true,
  }));

/** One quota for each budget that the calls of this quota count against. */
export const budgetedQuotas = (quota: Quota): BudgetedQuota[] => [
  ...sharedQuotas(quota),
  ...(hasBudget(quota) ? [quota] : []),
];

/**
 * Budgets of keys. Redis has the counters. They are recounted from MongoDB if they are missing, from an earlier period, or
 * older than the connection to Redis. MongoDB knows every open call of a key with a budget, because each call writes its own
 * hold before it takes from the budget (docs/adr/0024-key-budgets.md).
 */
export function createBudgets(
  deps: Uses<"clock" | "log"> & {
    limits: ReturnType<typeof createLimits>;
    money: Pick<Money, "chargesOfKeys" | "costsOf">;
    store: Pick<KeyStore, "sharing">;
  },
) {
  const { limits, money, store, clock, log } = deps;
  const counting = new Map<string, Promise<void>>();
  const endedAt = new Map<string, number>();

  async function countOnce(quota: BudgetedQuota): Promise<void> {
    const { account, keyId, period } = quota.budget;
    const token = randomBase62(12);
    const begun = await limits.beginCount(quota, token, countLeaseMs);
    if (begun === "counting") return sleep(clock, countPollMs);
    if (begun === "counted") return;
    const { from } = periodAt(period, clock.now());
    const since = new Date(from);
    // A key that is created after this read takes from the budget after the count.
    const keys = [keyId, ...(await store.sharing(account, keyId, since))];
    const charges = await money.chargesOfKeys(account, keys, since);
    await limits.endCount(quota, token, { ...charges, from });
    log.info(
      { account, key: keyId, keys: keys.length, period, open: charges.open.length },
      "a budget was counted from the ledger",
    );
  }

  /** Concurrent calls of a key share one count. */
  function count(quota: BudgetedQuota): Promise<void> {
    const { keyId } = quota.budget;
    const running = counting.get(keyId);
    if (running) return running;
    const started = countOnce(quota).finally(() => counting.delete(keyId));
    counting.set(keyId, started);
    return started;
  }

  /** Repeats `ask`, counting the budget in between, until the counters are there. */
  async function whenCounted<T>(quota: BudgetedQuota, ask: () => Promise<T>, isCounted: (answer: T) => boolean) {
    const giveUpAt = performance.now() + countTimeoutMs;
    for (;;) {
      const answer = await ask();
      if (isCounted(answer)) return answer;
      if (performance.now() > giveUpAt) throw noCapacity("The budget of the API key cannot be counted right now.", 1);
      await count(quota);
    }
  }

  const state = (quota: BudgetedQuota): Promise<BudgetState> =>
    whenCounted(
      quota,
      () => limits.readBudget(quota),
      ({ isCounted }) => isCounted,
    );

  /** Ends open calls whose cost is in the ledger: those whose API instance died, and uploads that were never completed. */
  async function endFinished(quota: BudgetedQuota): Promise<void> {
    const { account, keyId } = quota.budget;
    const now = performance.now();
    if (now - (endedAt.get(keyId) ?? Number.NEGATIVE_INFINITY) < endEveryMs) return;
    if (endedAt.size >= maxRemembered) endedAt.clear();
    endedAt.set(keyId, now);
    const costs = await money.costsOf(account, await limits.openCalls(quota.budget));
    await Promise.all([...costs].map(([requestId, costNanoUsd]) => limits.end({ quota, requestId, costNanoUsd })));
  }

  function refused(
    { budget, isShared }: BudgetedQuota,
    { spentNanoUsd, openNanoUsd }: BudgetState,
    neededNanoUsd: bigint,
  ) {
    const { limitNanoUsd, period, keyId } = budget;
    const { until } = periodAt(period, clock.now());
    const limit = `${formatUsd(limitNanoUsd)} USD ${period === "total" ? "in total" : `a ${period}`}`;
    const open = openNanoUsd > 0n ? `, calls in flight can cost ${formatUsd(openNanoUsd)} USD` : "";
    const resets = until === undefined ? "It does not reset." : `It resets at ${new Date(until).toISOString()}.`;
    const whose = isShared ? `The budget that this API key shares with '${keyId}'` : "The budget of this API key";
    return budgetExceeded(
      `${whose} is ${limit}: ${formatUsd(spentNanoUsd)} USD are spent${open}, and this call can cost ${formatUsd(neededNanoUsd)} USD. ${resets}`,
    );
  }

  return {
    state,

    /** The remaining budget, at least `minNanoUsd`. Throws 402 if less is left. */
    async remaining(quota: BudgetedQuota, minNanoUsd: bigint): Promise<bigint> {
      const { limitNanoUsd } = quota.budget;
      const remainingOf = ({ spentNanoUsd, openNanoUsd }: BudgetState) => limitNanoUsd - spentNanoUsd - openNanoUsd;
      let now = await state(quota);
      for (const pauseMs of [0, ...pausesMs]) {
        if (remainingOf(now) >= minNanoUsd) return remainingOf(now);
        // Spent money does not come back in this period.
        if (now.openNanoUsd === 0n || limitNanoUsd - now.spentNanoUsd < minNanoUsd) break;
        if (pauseMs === 0) await endFinished(quota);
        else await sleep(clock, pauseMs);
        now = await state(quota);
      }
      if (remainingOf(now) >= minNanoUsd) return remainingOf(now);
      throw refused(quota, now, minNanoUsd);
    },

    /** Repeats a take that found no counters. Throws 402 if the budget does not cover it. */
    async take<T extends { readonly reached?: string }>(quota: BudgetedQuota, nanoUsd: bigint, ask: () => Promise<T>) {
      const taken = await whenCounted(quota, ask, ({ reached }) => reached !== "uncounted");
      if (taken.reached === "budget") throw refused(quota, await state(quota), nanoUsd);
      return taken;
    },
  };
}
