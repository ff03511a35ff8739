import { type KeyBudget, type Limits, periodAt } from "#key-records";
import type { Clock } from "#platform/clock";
import { groupCommit, type ObserveWrite } from "#platform/concurrency/group-commit";
import { onReconnect, type RedisClient } from "#platform/redis";
import { createScriptRunner } from "#platform/redis-scripts";
import { source } from "./limits-script.ts";

/** State of the two buckets, for the `x-ratelimit-*` headers. */
export type RateLimits = Readonly<Record<"requests" | "tokens", Bucket>>;

interface Bucket {
  readonly limit: number;
  readonly remaining: number;
  /** Time until the bucket is full again. */
  readonly resetMs: number;
}

/**
 * A group of counters under one name in Redis. Its hash tag is the key's id, so that all counters of a key are on one shard.
 */
export interface Quota extends Limits {
  readonly name: string;
  /** The key's own budget, against which all of its quotas count. */
  readonly budget?: QuotaBudget | undefined;
  /** Budgets of other keys, against which its calls also count. */
  readonly sharedBudgets?: readonly QuotaBudget[];
}

export interface QuotaBudget extends KeyBudget {
  readonly account: string;
  readonly keyId: string;
}

/** The spending of a key in this period, and the maximum cost of its open calls. */
export interface BudgetState {
  readonly isCounted: boolean;
  readonly spentNanoUsd: bigint;
  readonly openNanoUsd: bigint;
}

/** An open call and its maximum cost. */
interface OpenTake {
  readonly id: string;
  readonly nanoUsd: bigint;
}

export interface LimitCheck {
  /** The limit that refused a call, in which case nothing was counted. */
  readonly reached?: "requests" | "tokens" | "concurrent" | "budget" | "uncounted";
  /** Time until the refused call would fit; a guess if it lacks a slot. */
  readonly waitMs: number;
  /** Set by `enter`: the calls of the quota that were already in flight, in all instances. */
  readonly inFlight: number;
  /** Set by `enter`: all tokens of the call, or none. */
  readonly takenTokens: number;
  readonly rateLimits: RateLimits;
}

/** No call runs longer. */
const longestCallMs = 3_600_000;

/** Operations in one script. Redis does nothing else while it runs. */
const maxGroup = 100;

interface Call {
  readonly quota: Quota;
  readonly requestId: string;
}

type Kind = "enter" | "take" | "free" | "end" | "read" | "count" | "counted";
type Argument = number | string;
type Operation = readonly [kind: Kind, id: string, first: Argument, second: Argument];

interface Item {
  readonly quota: Quota;
  readonly operation: Operation;
}

type Verdict = readonly [
  verdict: "taken" | "counting" | NonNullable<LimitCheck["reached"]>,
  ...numbers: (string | number)[],
];

/** The name of the hash of a key's budget. */
const budgetKey = ({ keyId }: QuotaBudget): string => `limits:{${keyId}}:budget`;

export function createLimits(redis: RedisClient, clock: Clock, observe?: ObserveWrite) {
  const runScript = createScriptRunner(redis);
  let connectedAt = performance.now();
  onReconnect(redis, () => {
    connectedAt = performance.now();
  });
  /** Operations for a quota that come in one turn, or while its script is running, share the next script. */
  const commit = groupCommit<Item, Verdict | null>({
    limit: maxGroup,
    observe,
    async write(_, group) {
      const { name, requestsPerMinute, tokensPerMinute, concurrentRequests, budget } = (group[0] as Item).quota;
      const keys = [`limits:${name}:buckets`, `limits:${name}:running`];
      const operations: Argument[] = group.flatMap(({ operation }) => operation);
      if (budget) {
        keys.push(budgetKey(budget));
        const { limitNanoUsd, period, since } = budget;
        const connectedMs = performance.now() - connectedAt;
        // Recount once more when all calls that were in flight when the budget was set have ended.
        const setMs = clock.now() - since.getTime() - longestCallMs;
        const ageMs = setMs > 0 ? Math.min(connectedMs, setMs) : connectedMs;
        operations.unshift(String(limitNanoUsd), period, periodAt(period, clock.now()).from, ageMs);
      }
      const args = [requestsPerMinute, tokensPerMinute, concurrentRequests, ...operations];
      return (await runScript(source, keys, args)) as (Verdict | null)[];
    },
  });
  let made = 0;
  const run = ({ quota, mayWaitMs }: Pick<Call, "quota"> & { mayWaitMs?: number }, ...operation: Operation) => {
    const { name, requestsPerMinute, tokensPerMinute, concurrentRequests, budget } = quota;
    const limits = `${name} ${requestsPerMinute} ${tokensPerMinute} ${concurrentRequests}`;
    const key = budget ? `${limits} ${budget.limitNanoUsd} ${budget.period}` : limits;
    return commit(key, String(made++), { quota, operation }, mayWaitMs);
  };

  return {
    /** Counts a request, and its `tokens` if there are as many, and takes a slot, which expires after `ttlMs`. */
    async enter(call: Call & { ttlMs: number; tokens?: number }): Promise<LimitCheck> {
      const { requestId, ttlMs, tokens = 0 } = call;
      return toCheck(call.quota, (await run(call, "enter", requestId, ttlMs, tokens)) as Verdict);
    },

    /** Counts the tokens of a call that has a slot, and its maximum cost. */
    async takeTokens(call: Call & { tokens: number; nanoUsd: bigint }): Promise<LimitCheck> {
      const { requestId, tokens, nanoUsd } = call;
      return toCheck(call.quota, (await run(call, "take", requestId, tokens, String(nanoUsd))) as Verdict);
    },

    /** Replaces the maximum cost of an ended call by its cost, once. */
    async end({ quota, requestId, costNanoUsd }: Call & { costNanoUsd: bigint }): Promise<void> {
      await run({ quota }, "end", requestId, String(costNanoUsd), 0);
    },

    async readBudget(quota: Quota): Promise<BudgetState> {
      return toState((await run({ quota }, "read", "", 0, 0)) as Verdict);
    },

    /** Resolves to `begun` if the caller must count the budget under this token. Nobody else does for `claimMs`. */
    async beginCount(quota: Quota, token: string, claimMs: number): Promise<"begun" | "counting" | "counted"> {
      const [verdict] = (await run({ quota }, "count", token, claimMs, 0)) as Verdict;
      if (verdict === "uncounted") return "begun";
      return verdict === "counting" ? "counting" : "counted";
    },

    /** Does nothing if another count has begun since. */
    async endCount(
      quota: Quota,
      token: string,
      { spentNanoUsd, open, from }: { spentNanoUsd: bigint; open: readonly OpenTake[]; from: number },
    ): Promise<void> {
      const calls = open.map(({ id, nanoUsd }) => `${id}=${nanoUsd}`).join();
      await run({ quota }, "counted", token, String(spentNanoUsd), `${from};${calls}`);
    },

    async openCalls(budget: QuotaBudget): Promise<string[]> {
      const fields = await redis.hkeys(budgetKey(budget));
      return fields.filter((field) => field.startsWith("o:")).map((field) => field.slice(2));
    },

    /**
     * Frees the slot and corrects what is used, up or down, if the call still has its slot. Within `mayWaitMs` it shares the
     * script of other operations.
     */
    async free(call: Call & { requests: number; tokens: number; mayWaitMs?: number }): Promise<void> {
      await run(call, "free", call.requestId, call.requests, call.tokens);
    },
  };
}

function toState([verdict, ...numbers]: Verdict): BudgetState {
  const [spent = 0, open = 0] = numbers.slice(5);
  return { isCounted: verdict === "taken", spentNanoUsd: BigInt(spent), openNanoUsd: BigInt(open) };
}

function toCheck(quota: Quota, [verdict, ...numbers]: Verdict): LimitCheck {
  const [waitMs = 0, requests = 0, tokens = 0, inFlight = 0, takenTokens = 0] = numbers.map(Number);
  const bucket = (limit: number, used: number): Bucket => ({
    limit,
    remaining: Math.max(0, Math.floor(limit - used)),
    resetMs: Math.ceil((used / limit) * 60_000),
  });
  return {
    ...(verdict !== "taken" && verdict !== "counting" && { reached: verdict }),
    waitMs,
    inFlight,
    takenTokens,
    rateLimits: { requests: bucket(quota.requestsPerMinute, requests), tokens: bucket(quota.tokensPerMinute, tokens) },
  };
}
