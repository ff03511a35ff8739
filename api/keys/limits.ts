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
export type RateLimits = Readonly<Record<"requests" | "tokens", Bucket>>;

interface Bucket {
  readonly limit: number;
  readonly remaining: number;
  /** Time until the bucket is full again. */
  readonly resetMs: number;
}

/** What is counted under one name in Redis. Its hash tag is the key's id, so that all of a key is on one shard. */
export interface Quota extends Limits {
  readonly name: string;
}

export interface LimitCheck {
  /** The limit that refused a call: nothing was counted. */
  readonly reached?: "requests" | "tokens" | "concurrent";
  /** Until the refused call would fit; a guess for a slot. */
  readonly waitMs: number;
  readonly rateLimits: RateLimits;
}

/** Expected where a caller was not looked up, or has just been. */
export const anyEpoch = "any";

type Script = readonly [sha1: string, source: string];
const script = (source: string): Script => [createHash("sha1").update(source).digest("hex"), source];

async function run(redis: Redis, [sha1, source]: Script, keys: string[], args: (string | number)[]): Promise<unknown> {
  try {
    return await redis.evalsha(sha1, keys.length, ...keys, ...args);
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
    return redis.eval(source, keys.length, ...keys, ...args);
  }
}

/**
 * Buckets hold what is used, not what remains: an absent bucket is a full one, a changed limit is in force at once, and
 * the key may expire when nothing is used any more. The time is that of the Redis server.
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
 * Arguments: the id and time to live of each call, in order. All limits of a call are checked before any is counted; tokens
 * are counted later, but a bucket in debt refuses. Slots of calls past their deadline are free.
 */
const enterScript = script(`${buckets}
local slots, expected = tonumber(ARGV[3]), ARGV[4]
local epoch = redis.call('GET', KEYS[3]) or ''
local answer, changed = {epoch}, false
if expected == '${anyEpoch}' or expected == epoch then
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
`);

/** Arguments: the tokens of each call that has a slot, in order. */
const takeTokensScript = script(`${buckets}
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
`);

/**
 * Arguments: the id of each call, and what to add to its requests and tokens. A slot is freed once: only its removal makes
 * the correction count. Usage beyond the tokens taken may put the bucket in debt, by its capacity at most.
 */
const freeScript = script(`${buckets}
local changed = false
for i = 3, #ARGV, 3 do
  if redis.call('ZREM', running, ARGV[i]) == 1 then
    requests = math.max(0, requests + tonumber(ARGV[i + 1]))
    tokens = math.min(2 * tokensPerMinute, math.max(0, tokens + tonumber(ARGV[i + 2])))
    changed = true
  end
end
if changed then save() end
`);

const keysOf = ({ name }: Quota) => [`limits:${name}:buckets`, `limits:${name}:running`];

/** Calls in one script: Redis does nothing else meanwhile. */
const maxGroup = 100;

interface Call {
  readonly quota: Quota;
  readonly requestId: string;
  readonly expectedEpoch?: string;
}

/** What comes for a quota while its script is under way goes into the next one together. */
function grouped<C extends Call, Result>(
  write: (shared: Call, calls: readonly C[]) => Promise<readonly Result[]>,
): (call: C) => Promise<Result> {
  const commit = groupCommit<C, Result>({
    limit: maxGroup,
    write: (_, calls) => write(calls[0] as C, calls),
  });
  return (call) => commit(JSON.stringify([call.quota, call.expectedEpoch]), call.requestId, call);
}

type Verdict = readonly [verdict: "taken" | NonNullable<LimitCheck["reached"]>, ...numbers: string[]];

export function createLimits(redis: Redis) {
  return {
    /** Counts a request and takes a slot; `ttlMs` later it is free in any case. Without a check the epoch is another one. */
    enter: grouped<Call & { ttlMs: number }, { epoch: string; check: LimitCheck | undefined }>(
      async ({ quota, expectedEpoch = anyEpoch }, calls) => {
        const { requestsPerMinute, tokensPerMinute, concurrentRequests } = quota;
        const each = calls.flatMap(({ requestId, ttlMs }) => [requestId, ttlMs]);
        const args = [requestsPerMinute, tokensPerMinute, concurrentRequests, expectedEpoch, ...each];
        const answer = await run(redis, enterScript, [...keysOf(quota), epochKey], args);
        const [epoch, ...verdicts] = answer as [string, ...Verdict[]];
        return calls.map((_, at) => ({ epoch, check: verdicts[at] && toCheck(quota, verdicts[at]) }));
      },
    ),

    takeTokens: grouped<Call & { tokens: number }, LimitCheck>(async ({ quota }, calls) => {
      const args = [quota.requestsPerMinute, quota.tokensPerMinute, ...calls.map(({ tokens }) => tokens)];
      const verdicts = (await run(redis, takeTokensScript, keysOf(quota), args)) as Verdict[];
      return verdicts.map((verdict) => toCheck(quota, verdict));
    }),

    /** Adds to what is used, or subtracts from it, if the call still has its slot. */
    free: grouped<Call & { requests: number; tokens: number }, void>(async ({ quota }, calls) => {
      const each = calls.flatMap(({ requestId, requests, tokens }) => [requestId, requests, tokens]);
      await run(redis, freeScript, keysOf(quota), [quota.requestsPerMinute, quota.tokensPerMinute, ...each]);
      return calls.map(() => undefined);
    }),
  };
}

function toCheck(quota: Quota, [verdict, ...numbers]: Verdict): LimitCheck {
  const [waitMs = 0, requests = 0, tokens = 0] = numbers.map(Number);
  const bucket = (limit: number, used: number): Bucket => ({
    limit,
    remaining: Math.max(0, Math.floor(limit - used)),
    resetMs: Math.ceil((used / limit) * 60_000),
  });
  return {
    ...(verdict !== "taken" && { reached: verdict }),
    waitMs,
    rateLimits: { requests: bucket(quota.requestsPerMinute, requests), tokens: bucket(quota.tokensPerMinute, tokens) },
  };
}
