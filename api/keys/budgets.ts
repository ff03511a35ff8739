import { budgetExceeded, noCapacity } from "#errors";
import { formatUsd, type Money } from "#money";
import { sleep } from "#platform/clock";
import { randomBase62 } from "#platform/ids";
import type { Uses } from "#platform/uses";
import { periodAt } from "./budget-period.ts";
import type { BudgetState, createLimits, Quota, QuotaBudget } from "./limits.ts";
import type { createKeyStore } from "./store.ts";

/** Others wait this long for an instance that counts; then it counts as dead. */
const countLeaseMs = 5_000;
const countPollMs = 20;
const countTimeoutMs = 10_000;
/** For calls that have ended, and whose ends are on their way to Redis. */
const pausesMs = [50, 100];
/** Open calls of one key are looked up in the ledger this seldom. */
const settleEveryMs = 1_000;
const maxRemembered = 1_000;

type BudgetedQuota = Quota & { readonly budget: QuotaBudget; readonly isShared?: boolean };
export const hasBudget = (quota: Quota): quota is BudgetedQuota => quota.budget !== undefined;

/**
 * For the budgets of other keys: each is on its own key's shard of Redis, so its calls are taken and ended by scripts of their own,
 * which count nothing else.
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

/** One for each budget that the calls of this quota count against. */
export const budgetedQuotas = (quota: Quota): BudgetedQuota[] => [
  ...sharedQuotas(quota),
  ...(hasBudget(quota) ? [quota] : []),
];

/**
 * Budgets of keys. Redis has the counters; they are counted again from MongoDB where they are missing, of an earlier period, or
 * older than the connection to Redis. MongoDB knows every open call of a key with a budget, because each has a hold of its own
 * before it takes from the budget: docs/adr/0024-key-budgets.md.
 */
export function createBudgets(
  deps: Uses<"clock" | "log"> & {
    limits: ReturnType<typeof createLimits>;
    money: Pick<Money, "chargesOfKeys" | "costsOf">;
    store: Pick<ReturnType<typeof createKeyStore>, "sharing">;
  },
) {
  const { limits, money, store, clock, log } = deps;
  const counting = new Map<string, Promise<void>>();
  const settledAt = new Map<string, number>();

  async function countOnce(quota: BudgetedQuota): Promise<void> {
    const { account, keyId, period } = quota.budget;
    const token = randomBase62(12);
    const begun = await limits.beginCount(quota, token, countLeaseMs);
    if (begun === "counting") return sleep(clock, countPollMs);
    if (begun === "counted") return;
    const { from } = periodAt(period, clock.now());
    const since = new Date(from);
    // A key that is made after this was read takes from the budget after the count.
    const keys = [keyId, ...(await store.sharing(account, keyId, since))];
    const charges = await money.chargesOfKeys(account, keys, since);
    await limits.endCount(quota, token, { ...charges, from });
    log.info(
      { account, key: keyId, keys: keys.length, period, open: charges.open.length },
      "a budget was counted from the ledger",
    );
  }

  /** Calls of a key that come together share a count. */
  function count(quota: BudgetedQuota): Promise<void> {
    const { keyId } = quota.budget;
    const running = counting.get(keyId);
    if (running) return running;
    const started = countOnce(quota).finally(() => counting.delete(keyId));
    counting.set(keyId, started);
    return started;
  }

  /** Repeats what says `uncounted` until the counters are there. */
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
      () => limits.look(quota),
      ({ isCounted }) => isCounted,
    );

  /** Ends what the ledger has decided, of calls whose API instance died and of uploads that nobody completed. */
  async function settleOpen(quota: BudgetedQuota): Promise<void> {
    const { account, keyId } = quota.budget;
    const now = performance.now();
    if (now - (settledAt.get(keyId) ?? Number.NEGATIVE_INFINITY) < settleEveryMs) return;
    if (settledAt.size >= maxRemembered) settledAt.clear();
    settledAt.set(keyId, now);
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

    /** The rest of the budget, at least `minNanoUsd`. Throws 402. */
    async remaining(quota: BudgetedQuota, minNanoUsd: bigint): Promise<bigint> {
      const { limitNanoUsd } = quota.budget;
      const remainingOf = ({ spentNanoUsd, openNanoUsd }: BudgetState) => limitNanoUsd - spentNanoUsd - openNanoUsd;
      let now = await state(quota);
      for (const pauseMs of [0, ...pausesMs]) {
        if (remainingOf(now) >= minNanoUsd) return remainingOf(now);
        // What is spent does not come back in this period.
        if (now.openNanoUsd === 0n || limitNanoUsd - now.spentNanoUsd < minNanoUsd) break;
        if (pauseMs === 0) await settleOpen(quota);
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
