import { createHash } from "node:crypto";
import type { Redis } from "ioredis";
import { groupCommit } from "#platform/group-commit";
import { epochKey } from "./epoch.ts";

/** Limits of one API key: two token buckets that refill continuously, and the calls in flight. */
export interface Limits {
  readonly requestsPerMinute: number;
  readonly tokensPerMinute: number;
  readonly concurrentRequests: number;
}

/** State of the two buckets, for the `x-ratelimit-*` headers. */
export interface RateLimits {
  readonly limitRequests: number;
  readonly remainingRequests: number;
  /** Time until the bucket is full again. */
  readonly resetRequestsMs: number;
  readonly limitTokens: number;
  readonly remainingTokens: number;
  readonly resetTokensMs: number;
}

/** A limit that refused a call: nothing was counted. */
export type Reached = "requests" | "tokens" | "concurrent";

export interface Taken {
  readonly reached?: Reached;
  /** Until the refused call would fit; a guess for a slot. */
  readonly waitMs: number;
  readonly rateLimits: RateLimits;
}

export interface Entered extends Taken {
  readonly epoch: string;
  /** The epoch is not the one asked for: nothing was checked or counted. */
  readonly outdated: boolean;
}

/**
 * Buckets hold what is used rather than what is left: an absent bucket is a full one, a changed limit is in force at
 * once, and the key may expire when nothing is used any more. Time is Redis's own.
 */
const buckets = `
local buckets, running = KEYS[1], KEYS[2]
local requestsPerMinute, tokensPerMinute = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local stored = redis.call('HMGET', buckets, 'requests', 'tokens', 'at')
local minutes = math.max(0, now - (tonumber(stored[3]) or now)) / 60000
local requests = math.max(0, (tonumber(stored[1]) or 0) - minutes * requestsPerMinute)
local tokens = math.max(0, (tonumber(stored[2]) or 0) - minutes * tokensPerMinute)
local function save()
  redis.call('HSET', buckets, 'requests', requests, 'tokens', tokens, 'at', now)
  redis.call('PEXPIRE', buckets, math.ceil(math.max(requests / requestsPerMinute, tokens / tokensPerMinute) * 60000) + 1)
end
`;

/**
 * Calls in the order in which they came: id and time to live of each. All limits of a call are checked before any is
 * counted; tokens are counted later, but a bucket in debt refuses. Slots of calls past their deadline are free.
 */
const enter = `${buckets}
local slots, known = tonumber(ARGV[3]), ARGV[4]
local epoch = redis.call('GET', KEYS[3]) or ''
local answer, changed = {epoch}, false
if known == 'any' or known == epoch then
  redis.call('ZREMRANGEBYSCORE', running, '-inf', now)
  local taken = redis.call('ZCARD', running)
  for i = 5, #ARGV, 2 do
    local id = ARGV[i]
    local verdict, wait = 'taken', 0
    if not redis.call('ZSCORE', running, id) then
      if taken >= slots then verdict, wait = 'concurrent', 1000 end
      local forRequest = (requests + 1 - requestsPerMinute) / requestsPerMinute * 60000
      if forRequest > wait then verdict, wait = 'requests', forRequest end
      local forTokens = (tokens - tokensPerMinute) / tokensPerMinute * 60000
      if forTokens > wait then verdict, wait = 'tokens', forTokens end
      if verdict == 'taken' then
        local deadline = math.ceil(now + tonumber(ARGV[i + 1]))
        redis.call('ZADD', running, deadline, id)
        if redis.call('PEXPIRETIME', running) < deadline then redis.call('PEXPIREAT', running, deadline) end
        requests = requests + 1
        taken = taken + 1
        changed = true
      end
    end
    answer[#answer + 1] = {verdict, tostring(wait), tostring(requests), tostring(tokens)}
  end
end
if changed then save() end
return answer
`;

/** The tokens of calls that have entered, in the order in which they ask. */
const takeTokens = `${buckets}
local answer, changed = {}, false
for i = 3, #ARGV do
  local cost = tonumber(ARGV[i])
  local verdict, wait = 'taken', (tokens + cost - tokensPerMinute) / tokensPerMinute * 60000
  if wait > 0 then
    verdict = 'tokens'
  else
    tokens = tokens + cost
    changed = true
  end
  answer[#answer + 1] = {verdict, tostring(wait), tostring(requests), tostring(tokens)}
end
if changed then save() end
return answer
`;

/**
 * Calls: id, and what to add to the requests and tokens of each. Frees a slot once: its removal is what makes the
 * correction count. More tokens than were taken may drive the bucket down to minus its capacity, never above it.
 */
const free = `${buckets}
local changed = false
for i = 3, #ARGV, 3 do
  if redis.call('ZREM', running, ARGV[i]) == 1 then
    requests = math.max(0, requests + tonumber(ARGV[i + 1]))
    tokens = math.min(2 * tokensPerMinute, math.max(0, tokens + tonumber(ARGV[i + 2])))
    changed = true
  end
end
if changed then save() end
`;

type Script = readonly [sha1: string, source: string];
const script = (source: string): Script => [createHash("sha1").update(source).digest("hex"), source];
const enterScript = script(enter);
const takeTokensScript = script(takeTokens);
const freeScript = script(free);

async function run(redis: Redis, [sha1, source]: Script, keys: string[], args: (string | number)[]): Promise<unknown> {
  try {
    return await redis.evalsha(sha1, keys.length, ...keys, ...args);
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
    return redis.eval(source, keys.length, ...keys, ...args);
  }
}

const isReached = (verdict: string): verdict is Reached => ["requests", "tokens", "concurrent"].includes(verdict);

/** What is counted under one name. Its hash tag is the API key, so that all keys of that live on one shard. */
export const callsOf = (keyId: string): string => `{${keyId}}`;
export const uploadsOf = (keyId: string): string => `{${keyId}}:uploads`;

const keysOf = (name: string) => [`limits:${name}:buckets`, `limits:${name}:running`];

interface Enter {
  readonly requestId: string;
  readonly ttlMs: number;
}

interface Tokens {
  readonly requestId: string;
  readonly tokens: number;
}

interface Free {
  readonly requestId: string;
  readonly requests: number;
  readonly tokens: number;
}

/** Most calls in one script: Redis does nothing else meanwhile. */
const groupLimit = 100;

type Verdict = readonly [verdict: string, waitMs: string, requests: string, tokens: string];

/** The scripts. What comes under a name while its script is under way goes into the next one together. */
export function createLimits(redis: Redis) {
  const enterTogether = groupCommit<{ name: string; limits: Limits; known: string; call: Enter }, Entered>({
    limit: groupLimit,
    async write(_, group) {
      const { name, limits, known } = group[0] as (typeof group)[number];
      const { requestsPerMinute, tokensPerMinute, concurrentRequests } = limits;
      const calls = group.flatMap(({ call }) => [call.requestId, call.ttlMs]);
      const args = [requestsPerMinute, tokensPerMinute, concurrentRequests, known, ...calls];
      const [epoch, ...verdicts] = (await run(redis, enterScript, [...keysOf(name), epochKey], args)) as [
        string,
        ...Verdict[],
      ];
      return group.map((_, at) => {
        const verdict = verdicts[at];
        return { ...toTaken(limits, verdict ?? ["", "0", "0", "0"]), epoch, outdated: verdict === undefined };
      });
    },
  });
  const takeTokensTogether = groupCommit<{ name: string; limits: Limits; call: Tokens }, Taken>({
    limit: groupLimit,
    async write(_, group) {
      const { name, limits } = group[0] as (typeof group)[number];
      const args = [limits.requestsPerMinute, limits.tokensPerMinute, ...group.map(({ call }) => call.tokens)];
      const verdicts = (await run(redis, takeTokensScript, keysOf(name), args)) as Verdict[];
      return verdicts.map((verdict) => toTaken(limits, verdict));
    },
  });
  const freeTogether = groupCommit<{ name: string; limits: Limits; call: Free }, undefined>({
    limit: groupLimit,
    async write(_, group) {
      const { name, limits } = group[0] as (typeof group)[number];
      const calls = group.flatMap(({ call }) => [call.requestId, call.requests, call.tokens]);
      await run(redis, freeScript, keysOf(name), [limits.requestsPerMinute, limits.tokensPerMinute, ...calls]);
      return group.map(() => undefined);
    },
  });
  // Calls of one script share its first arguments.
  const groupKey = (name: string, { requestsPerMinute, tokensPerMinute, concurrentRequests }: Limits, known = "") =>
    `${name} ${requestsPerMinute} ${tokensPerMinute} ${concurrentRequests} ${known}`;

  return {
    /** `known` is the epoch that the caller was looked up under, or `any`. */
    enter: (name: string, limits: Limits, call: Enter, known: string): Promise<Entered> =>
      enterTogether(groupKey(name, limits, known), call.requestId, { name, limits, known, call }),

    takeTokens: (name: string, limits: Limits, call: Tokens): Promise<Taken> =>
      takeTokensTogether(groupKey(name, limits), call.requestId, { name, limits, call }),

    /** Adds to what is used, or takes from it, if the call still has its slot. */
    free: (name: string, limits: Limits, call: Free): Promise<void> =>
      freeTogether(groupKey(name, limits), call.requestId, { name, limits, call }),
  };
}

function toTaken({ requestsPerMinute, tokensPerMinute }: Limits, [verdict, waitMs, requests, tokens]: Verdict): Taken {
  const left = (limit: number, used: string) => Math.max(0, Math.floor(limit - Number(used)));
  const untilFullMs = (limit: number, used: string) => Math.ceil((Number(used) / limit) * 60_000);
  return {
    ...(isReached(verdict) && { reached: verdict }),
    waitMs: Number(waitMs),
    rateLimits: {
      limitRequests: requestsPerMinute,
      remainingRequests: left(requestsPerMinute, requests),
      resetRequestsMs: untilFullMs(requestsPerMinute, requests),
      limitTokens: tokensPerMinute,
      remainingTokens: left(tokensPerMinute, tokens),
      resetTokensMs: untilFullMs(tokensPerMinute, tokens),
    },
  };
}
