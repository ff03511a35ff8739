/**
 * The load of the service: calls, failures and charges, and the attempts at each upstream, by minute and by hour, for the
 * operator's overview, and the attempts for each model at each upstream by hour, for the page of models. Every process
 * counts in memory and adds its counts to Redis every five seconds, so reading them costs the same at any load. It is not a
 * ledger: counts that Redis or a killed process loses are missing here. Owns the Redis keys `{traffic}:*`, which expire.
 */
import { oneAtATime } from "#platform/concurrency/one-at-a-time";
import { type Buckets, bucketOf } from "#platform/time-buckets";
import type { Uses } from "#platform/uses";

const fields = ["calls", "failed", "refused", "nanoUsd"] as const;
type Field = (typeof fields)[number];
export type TrafficCount = { readonly [Name in Exclude<Field, "nanoUsd">]: number } & { readonly nanoUsd: bigint };
export interface TrafficPoint extends TrafficCount {
  /** Unix milliseconds at which its minute or hour begins. */
  readonly at: number;
}

/** Attempts at one upstream with the operator's key, for all models or for one. */
export interface AttemptCount {
  readonly attempts: number;
  readonly failed: number;
  /** The times to the first event of streams. */
  readonly firstToken: Buckets;
  /** The durations of attempts that succeeded. */
  readonly total: Buckets;
}

const minuteMs = 60_000;
/** The size, number and retention of each kind of bucket. */
const sizes = {
  minute: { ms: minuteMs, count: 60, seconds: 2 * 3_600 },
  hour: { ms: 60 * minuteMs, count: 24, seconds: 26 * 3_600 },
} as const;
type Size = keyof typeof sizes;
const flushMs = 5_000;

const kinds = { calls: ["minute", "hour"], upstreams: ["minute", "hour"], models: ["hour"] } as const;
type Kind = keyof typeof kinds;
const keyOf = (kind: Kind, size: Size, at: number) => `{traffic}:${kind === "calls" ? "" : `${kind}:`}${size}:${at}`;
const startOf = (size: Size, at: number) => at - (at % sizes[size].ms);

type Counts = Map<string, bigint>;
type Taken = Readonly<Record<Kind, ReadonlyMap<string, bigint>>>;

export type TrafficCounter = ReturnType<typeof createTrafficCounter>;

const noCounts = (): Record<Kind, Counts> => ({ calls: new Map(), upstreams: new Map(), models: new Map() });

/** The upstream of an attempt, and the catalog's model. */
interface Attempted {
  readonly upstream: string;
  readonly model: string;
}
/** Neither has a space. */
const nameOf = ({ upstream, model }: Attempted) => `${upstream}|${model}`;

export function createTrafficCounter() {
  let counts = noCounts();
  const add = (kind: Kind, field: string, by = 1n) =>
    void counts[kind].set(field, (counts[kind].get(field) ?? 0n) + by);
  const addCall = (field: Field, by?: bigint) => add("calls", field, by);
  const addAttempt = (at: Attempted, ...path: readonly (string | number)[]) => {
    add("upstreams", [at.upstream, ...path].join(" "));
    add("models", [nameOf(at), ...path].join(" "));
  };
  return {
    /** Counts a call that ended, in the process that captured its cost, so that it counts as its entry in the ledger says. */
    ended(status: string, nanoUsd: bigint): void {
      addCall("calls");
      if (status === "failed") addCall("failed");
      if (nanoUsd > 0n) addCall("nanoUsd", nanoUsd);
    },
    /** Counts a request that was refused before it became a call. */
    refused(): void {
      addCall("calls");
      addCall("refused");
    },
    /** Counts an attempt that ended. Only that of one which succeeded has a duration. */
    attempted(at: Attempted, ending: { readonly isFailed: boolean } | { readonly ms: number }): void {
      addAttempt(at, "attempts");
      if ("ms" in ending) addAttempt(at, "total", bucketOf(ending.ms));
      else if (ending.isFailed) addAttempt(at, "failed");
    },
    /** Counts the time to the first event of a stream. */
    firstEvent: (at: Attempted, ms: number): void => addAttempt(at, "firstToken", bucketOf(ms)),
    take(): Taken {
      const taken = counts;
      counts = noCounts();
      return taken;
    },
    /** Returns counts that could not be written, so that they are written with the next ones. */
    giveBack(taken: Taken): void {
      for (const kind of Object.keys(kinds) as Kind[]) for (const [field, by] of taken[kind]) add(kind, field, by);
    },
  };
}

type Times = Record<string, number>;
type AttemptCounts = ReadonlyMap<string, AttemptCount>;

function readFields(stored: Readonly<Record<string, string>>): AttemptCounts {
  const found = new Map<string, Record<"attempts" | "failed", number> & Record<"firstToken" | "total", Times>>();
  for (const [field, value] of Object.entries(stored)) {
    const [upstream = "", name, bucket] = field.split(" ");
    const count = found.get(upstream) ?? { attempts: 0, failed: 0, firstToken: {}, total: {} };
    found.set(upstream, count);
    if (name === "attempts" || name === "failed") count[name] = Number(value);
    else if ((name === "firstToken" || name === "total") && bucket) count[name][bucket] = Number(value);
  }
  return found;
}

/** Adds the counts of this process to the totals. */
export function startTraffic(deps: Uses<"redis" | "clock" | "log"> & { counter: TrafficCounter }) {
  const { counter, redis, clock, log } = deps;

  const flush = oneAtATime(log, "the traffic counts could not be written", async () => {
    const taken = counter.take();
    const counted = (Object.keys(kinds) as Kind[]).filter((kind) => taken[kind].size > 0);
    if (counted.length === 0) return;
    const batch = redis.multi();
    for (const kind of counted)
      for (const size of kinds[kind]) {
        const key = keyOf(kind, size, startOf(size, clock.now()));
        for (const [field, by] of taken[kind]) batch.hincrby(key, field, String(by));
        batch.expire(key, sizes[size].seconds);
      }
    try {
      await batch.exec();
    } catch (error) {
      counter.giveBack(taken);
      throw error;
    }
  });
  const stop = clock.every(flushMs, () => void flush());

  /** The starts of the buckets that are shown, oldest first. The last one is the current minute or hour. */
  function startsOf(size: Size): readonly number[] {
    const { ms, count } = sizes[size];
    const last = startOf(size, clock.now());
    return Array.from({ length: count }, (_, n) => last - (count - 1 - n) * ms);
  }

  /** Oldest first. Rejects while Redis is unavailable. */
  async function read(size: Size): Promise<TrafficPoint[]> {
    const starts = startsOf(size);
    const stored = await Promise.all(starts.map((at) => redis.hmget(keyOf("calls", size, at), ...fields)));
    return starts.map((at, n) => {
      const [calls, failed, refused, nanoUsd] = stored[n] ?? [];
      const number = (text: string | null | undefined) => Number(text ?? 0);
      return {
        at,
        calls: number(calls),
        failed: number(failed),
        refused: number(refused),
        nanoUsd: BigInt(nanoUsd ?? 0),
      };
    });
  }

  /** Buckets to which no process adds any more, by kind and size, so that they are read once. */
  const past = new Map<string, Map<number, AttemptCounts>>();

  async function readAttempts(kind: Exclude<Kind, "calls">, size: Size): Promise<readonly AttemptCounts[]> {
    const starts = startsOf(size);
    const kept = past.get(`${kind} ${size}`) ?? new Map<number, AttemptCounts>();
    past.set(`${kind} ${size}`, kept);
    const [first = 0] = starts;
    for (const at of kept.keys()) if (at < first) kept.delete(at);
    return Promise.all(
      starts.map(async (at) => {
        const counts = kept.get(at) ?? readFields(await redis.hgetall(keyOf(kind, size, at)));
        // A process whose write takes longer has a failed one behind it, and adds to a later bucket.
        if (at + sizes[size].ms + 2 * flushMs < clock.now()) kept.set(at, counts);
        return counts;
      }),
    );
  }

  return {
    read,
    /** The attempts by upstream in each minute or hour, oldest first. Rejects while Redis is unavailable. */
    readUpstreams: (size: Size) => readAttempts("upstreams", size),
    /** The attempts in the last 24 hours, for `attemptsFor`. Rejects while Redis is unavailable. */
    readModels: async () => summed(await readAttempts("models", "hour")),
    /** Writes the remaining counts once, unless Redis is unavailable. */
    async stop(): Promise<void> {
      stop();
      if (redis.status === "ready") await flush();
    },
  };
}

export type Traffic = ReturnType<typeof startTraffic>;

export const sumOf = (points: readonly TrafficCount[]): TrafficCount => ({
  calls: points.reduce((sum, { calls }) => sum + calls, 0),
  failed: points.reduce((sum, { failed }) => sum + failed, 0),
  refused: points.reduce((sum, { refused }) => sum + refused, 0),
  nanoUsd: points.reduce((sum, { nanoUsd }) => sum + nanoUsd, 0n),
});

function addTo(sum: Times, buckets: Buckets): void {
  for (const [bucket, times] of Object.entries(buckets)) sum[bucket] = (sum[bucket] ?? 0) + times;
}

function sumOfAttempts(counts: readonly AttemptCount[]): AttemptCount {
  const [firstToken, total]: [Times, Times] = [{}, {}];
  for (const count of counts) {
    addTo(firstToken, count.firstToken);
    addTo(total, count.total);
  }
  return {
    attempts: counts.reduce((sum, { attempts }) => sum + attempts, 0),
    failed: counts.reduce((sum, { failed }) => sum + failed, 0),
    firstToken,
    total,
  };
}

const summed = (points: readonly AttemptCounts[]): AttemptCounts =>
  new Map(
    [
      ...Map.groupBy(
        points.flatMap((point) => [...point]),
        ([name]) => name,
      ),
    ].map(([name, counts]) => [name, sumOfAttempts(counts.map(([, count]) => count))]),
  );

/** The attempts at an upstream in these minutes or hours. */
export const attemptsAt = (upstream: string, points: readonly AttemptCounts[]): AttemptCount =>
  sumOfAttempts(points.flatMap((point) => point.get(upstream) ?? []));

/** The attempts for a model at these upstreams. */
export const attemptsFor = (model: string, upstreams: readonly string[], counts: AttemptCounts): AttemptCount =>
  sumOfAttempts(upstreams.flatMap((upstream) => counts.get(nameOf({ upstream, model })) ?? []));
