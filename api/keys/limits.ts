import { createHash } from "node:crypto";
import { groupCommit, type ObserveWrite } from "#platform/group-commit";
import type { RedisClient } from "#platform/redis";

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
  /** Of `enter`: the calls of the quota that were in flight before, in all instances. */
  readonly inFlight: number;
  readonly rateLimits: RateLimits;
}

/**
 * Arguments: the limits, then the operations, each with its kind, the id of its call, and two more: of `enter` the time to
 * live, of `take` the tokens, of `free` what to add to the requests and tokens. Each has its own answer.
 *
 * Buckets hold what is used, not what remains: an absent bucket is a full one, a changed limit is in force at once, and
 * the key may expire when nothing is used any more. The time is that of the Redis server.
 *
 * enter: all limits of a call are checked before any is counted; tokens are counted later, but a bucket in debt refuses.
 * Slots of calls past their deadline are free.
 * free: a slot is freed once, because only its removal makes the correction count. Usage beyond the tokens taken may put
 * the bucket in debt, by its capacity at most.
 */
const source = `
local buckets, running = KEYS[1], KEYS[2]
local requestsPerMinute, tokensPerMinute, slots = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local stored = redis.call('HMGET', buckets, 'requests', 'tokens', 'at')
local minutes = math.max(0, now - (tonumber(stored[3]) or now)) / 60000
local requests = math.max(0, (tonumber(stored[1]) or 0) - minutes * requestsPerMinute)
local tokens = math.max(0, (tonumber(stored[2]) or 0) - minutes * tokensPerMinute)
local taken
local answers, changed = {}, false
for i = 4, #ARGV, 4 do
  local kind, id, first, second = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local verdict, wait
  local inFlight = 0
  if kind == 'enter' then
    if not taken then
      redis.call('ZREMRANGEBYSCORE', running, '-inf', now)
      taken = redis.call('ZCARD', running)
    end
    verdict, wait, inFlight = 'taken', 0, taken
    if not redis.call('ZSCORE', running, id) then
      if taken >= slots then verdict, wait = 'concurrent', 1000 end
      local forRequest = (requests + 1 - requestsPerMinute) / requestsPerMinute * 60000
      if forRequest > wait then verdict, wait = 'requests', forRequest end
      local forTokens = (tokens - tokensPerMinute) / tokensPerMinute * 60000
      if forTokens > wait then verdict, wait = 'tokens', forTokens end
      if verdict == 'taken' then
        local deadline = math.ceil(now + tonumber(first))
        redis.call('ZADD', running, deadline, id)
        if redis.call('PEXPIRETIME', running) < deadline then redis.call('PEXPIREAT', running, deadline) end
        requests = requests + 1
        taken = taken + 1
        changed = true
      end
    end
  elseif kind == 'take' then
    verdict, wait = 'taken', (tokens + tonumber(first) - tokensPerMinute) / tokensPerMinute * 60000
    if wait > 0 then
      verdict = 'tokens'
    else
      tokens = tokens + tonumber(first)
      changed = true
    end
  elseif redis.call('ZREM', running, id) == 1 then
    if taken then taken = taken - 1 end
    requests = math.max(0, requests + tonumber(first))
    tokens = math.min(2 * tokensPerMinute, math.max(0, tokens + tonumber(second)))
    changed = true
  end
  answers[i / 4] = verdict and {verdict, tostring(wait), tostring(requests), tostring(tokens), inFlight} or false
end
if changed then
  redis.call('HSET', buckets, 'requests', requests, 'tokens', tokens, 'at', now)
  redis.call('PEXPIRE', buckets, math.ceil(math.max(requests / requestsPerMinute, tokens / tokensPerMinute) * 60000) + 1)
end
return answers
`;
const sha1 = createHash("sha1").update(source).digest("hex");

/** Operations in one script: Redis does nothing else meanwhile. */
const maxGroup = 100;

interface Call {
  readonly quota: Quota;
  readonly requestId: string;
}

type Kind = "enter" | "take" | "free";
type Operation = readonly [kind: Kind, requestId: string, first: number, second: number];

interface Item {
  readonly quota: Quota;
  readonly operation: Operation;
}

type Verdict = readonly [verdict: "taken" | NonNullable<LimitCheck["reached"]>, ...numbers: (string | number)[]];

export function createLimits(redis: RedisClient, observe?: ObserveWrite) {
  /** What comes for a quota in one turn, or while its script is under way, goes into one script. */
  const commit = groupCommit<Item, Verdict | null>({
    limit: maxGroup,
    observe,
    async write(_, group) {
      const { name, requestsPerMinute, tokensPerMinute, concurrentRequests } = (group[0] as Item).quota;
      const keys = [`limits:${name}:buckets`, `limits:${name}:running`];
      const operations = group.flatMap(({ operation }) => operation);
      const args = [...keys, requestsPerMinute, tokensPerMinute, concurrentRequests, ...operations];
      const answer = await redis.evalsha(sha1, keys.length, ...args).catch((error: Error) => {
        if (!error.message.startsWith("NOSCRIPT")) throw error;
        return redis.eval(source, keys.length, ...args);
      });
      return answer as (Verdict | null)[];
    },
  });
  let made = 0;
  const run = ({ quota }: Call, ...operation: Operation) => {
    const { name, requestsPerMinute, tokensPerMinute, concurrentRequests } = quota;
    const key = `${name} ${requestsPerMinute} ${tokensPerMinute} ${concurrentRequests}`;
    return commit(key, String(made++), { quota, operation });
  };

  return {
    /** Counts a request and takes a slot; `ttlMs` later it is free in any case. */
    async enter(call: Call & { ttlMs: number }): Promise<LimitCheck> {
      return toCheck(call.quota, (await run(call, "enter", call.requestId, call.ttlMs, 0)) as Verdict);
    },

    /** Counts the tokens of a call that has a slot. */
    async takeTokens(call: Call & { tokens: number }): Promise<LimitCheck> {
      return toCheck(call.quota, (await run(call, "take", call.requestId, call.tokens, 0)) as Verdict);
    },

    /** Adds to what is used, or subtracts from it, if the call still has its slot. */
    async free(call: Call & { requests: number; tokens: number }): Promise<void> {
      await run(call, "free", call.requestId, call.requests, call.tokens);
    },
  };
}

function toCheck(quota: Quota, [verdict, ...numbers]: Verdict): LimitCheck {
  const [waitMs = 0, requests = 0, tokens = 0, inFlight = 0] = numbers.map(Number);
  const bucket = (limit: number, used: number): Bucket => ({
    limit,
    remaining: Math.max(0, Math.floor(limit - used)),
    resetMs: Math.ceil((used / limit) * 60_000),
  });
  return {
    ...(verdict !== "taken" && { reached: verdict }),
    waitMs,
    inFlight,
    rateLimits: { requests: bucket(quota.requestsPerMinute, requests), tokens: bucket(quota.tokensPerMinute, tokens) },
  };
}
