/**
 * Answers that may be sent again to an equal request of the same API key or account (docs/guides/response-cache.md), and the
 * calls that equal requests wait for. Owns the prefix `cache:` of a Redis of its own (`CACHE_REDIS_URL`), which may evict
 * anything at any time: nothing depends on it but the price of a call. Texts of more than 1 MB are in S3.
 *
 * A *flight* is a call whose answer will be stored, while it runs. Its *leader* is the request that runs it; *followers* are
 * equal requests that wait for its answer. They read its *log*, in which the leader writes what it receives.
 *
 * Times are in milliseconds, costs in nano-USD. All functions reject while Redis is unavailable.
 */
import { noCapacity } from "#errors";
import type { Files } from "#files";
import { maxCacheTtlSeconds } from "#key-records";
import { randomBase62 } from "#platform/ids";
import type { RedisClient } from "#platform/redis";
import { createScriptRunner } from "#platform/redis-scripts";
import type { Uses } from "#platform/uses";
import { type CachedAnswer, decodeHead, type EntryHead, encodeEntry, maxAnswerBytes, textOf } from "./entries.ts";
import { accountVersion, type EntryName, folderOf, ownKeyVersion } from "./entry-name.ts";
import {
  abandonScript,
  beginScript,
  endScript,
  leaveScript,
  renewScript,
  stayScript,
  versionScript,
} from "./scripts.ts";

export { type CachedAnswer, maxAnswerBytes } from "./entries.ts";
export { type CacheableCall, type CacheOwner, type EntryName, entryName } from "./entry-name.ts";
export { type CacheUsage, type CacheUse, cacheUsageSchema, createCacheUsage } from "./usage.ts";

/** A stored answer whose text is not read yet. */
export interface FoundAnswer extends Omit<CachedAnswer, "text"> {
  /** The size of the text in UTF-8. */
  readonly bytes: number;
  text(): Promise<string>;
}

/** The part that a request has in a flight. Followers name their leader; one that is alone only stores its answer. */
export interface Flight {
  readonly name: EntryName;
  readonly requestId: string;
  readonly role: "leader" | "follower" | "alone";
  readonly leader: string;
  /** The versions when it began. An answer is stored only while they are current. */
  readonly version: string;
}

/** The entries of a log after some position. `failed`: the flight ended without an answer, or its leader is gone. */
export interface LogPart {
  readonly last: number;
  readonly events: string;
  /** The headers of the answer, which come with its first events. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly state: "running" | "ended" | "failed";
}

/** A flight lasts this long without being renewed. */
export const lockMs = 5_000;
/** Followers read the end of a log within this time. */
const keptLogMs = 60_000;
const maxFollowers = 1_000;
/** Longer than any entry. */
const versionMs = (maxCacheTtlSeconds + 3_600) * 1_000;
const readCount = 8;

const logOf = ({ name, leader }: Flight) => `${name.flight}:${leader}`;

export type ResponseCache = ReturnType<typeof createResponseCache>;

/** Without `redis`, no cache is configured. */
export function createResponseCache({
  redis,
  files,
  clock,
}: Uses<"clock"> & {
  readonly redis: RedisClient | undefined;
  readonly files: Pick<Files, "putCached" | "getCached" | "deleteCached">;
}) {
  const run = redis && createScriptRunner(redis);

  function ready() {
    if (!redis || !run || redis.status !== "ready") throw new Error("The response cache is unavailable.");
    return { redis, run };
  }

  async function currentVersion(versions: readonly string[]): Promise<string> {
    return String(await ready().run(versionScript, versions, [versionMs, randomBase62(16)]));
  }

  function found(head: EntryHead, content: Buffer): FoundAnswer {
    const { requestId, model, headers, cost: costNanoUsd, storedAt, expiresAt, bytes, object } = head;
    let read: Promise<string> | undefined;
    const readText = async () => textOf(head, object === undefined ? content : await files.getCached(object));
    const text = () => {
      read ??= readText();
      return read;
    };
    return { requestId, model, headers, costNanoUsd, storedAt, expiresAt, bytes, text };
  }

  return {
    isConfigured: redis !== undefined,
    isAvailable: () => redis?.status === "ready",

    /** The stored answer, unless it has expired or was deleted. */
    async find({ entry, versions }: EntryName): Promise<FoundAnswer | undefined> {
      const [stored, ...current] = await ready().redis.mgetBuffer(entry, ...versions);
      const decoded = stored ? decodeHead(stored) : undefined;
      if (!decoded || decoded.head.version !== current.join(" ") || decoded.head.expiresAt <= clock.now())
        return undefined;
      return found(decoded.head, decoded.content);
    },

    /**
     * Begins a flight, or joins the one of an equal request. Resolves to undefined if an answer has been stored in the
     * meantime, unless that does not matter (`replaces`).
     */
    async begin(name: EntryName, requestId: string, replaces: boolean): Promise<Flight | undefined> {
      const args = [versionMs, randomBase62(16), requestId, lockMs, maxFollowers, replaces ? 1 : 0];
      const reply = await ready().run(beginScript, [name.flight, name.entry, ...name.versions], args);
      const [verdict, version = "", leader = requestId] = reply as [Flight["role"] | "stored", ...string[]];
      return verdict === "stored" ? undefined : { name, requestId, role: verdict, leader, version };
    },

    /** The part of a request that neither leads nor follows. */
    beginAlone: async (name: EntryName, requestId: string): Promise<Flight> => ({
      name,
      requestId,
      role: "alone",
      leader: requestId,
      version: await currentVersion(name.versions),
    }),

    /** Returns the number of followers of each. */
    async renew(leaders: readonly Flight[]): Promise<number[]> {
      const { run } = ready();
      const renewed = leaders.map(({ name, requestId }) => run(renewScript, [name.flight], [requestId, lockMs]));
      return (await Promise.all(renewed)).map(Number);
    },

    /** Writes the next events to the log of a leader, the first (number 1) with headers. */
    async append(flight: Flight, number: number, events: string, headers?: FoundAnswer["headers"]): Promise<void> {
      const log = logOf(flight);
      const { redis } = ready();
      const fields = ["events", events, ...(headers ? ["headers", JSON.stringify(headers)] : [])];
      await Promise.all([redis.xadd(log, `0-${number}`, ...fields), redis.pexpire(log, keptLogMs)]);
    },

    /** Reads what the logs of followed flights have after these positions, in one round trip. */
    async read(wanted: readonly (readonly [flight: Flight, after: number])[]): Promise<LogPart[]> {
      const { redis } = ready();
      const pipeline = redis.pipeline();
      for (const [flight, after] of wanted)
        pipeline.hget(flight.name.flight, "leader").xrange(logOf(flight), `(0-${after}`, "+", "COUNT", readCount);
      const replies = (await pipeline.exec()) ?? [];
      return wanted.map(([{ leader }, after], at) => {
        const [leaderFailed, currentLeader] = replies[2 * at] ?? [];
        const [readFailed, entries] = replies[2 * at + 1] ?? [];
        const failed = leaderFailed ?? readFailed;
        if (failed) throw failed;
        return partOf(entries as LogEntry[], after, currentLeader === leader);
      });
    },

    /** Must be called at least every `lockMs` for the flights that this process follows. */
    async stay(followed: readonly Flight[]): Promise<void> {
      const { run } = ready();
      await Promise.all(followed.map(({ name, leader }) => run(stayScript, [name.flight], [leader])));
    },

    async leave({ name, leader }: Flight): Promise<void> {
      await ready().run(leaveScript, [name.flight], [leader]);
    },

    /** Resolves to true if followers wait for the answer. Otherwise the flight has ended. */
    isFollowed: async (flight: Flight): Promise<boolean> =>
      Number(await ready().run(abandonScript, [flight.name.flight], [flight.requestId, lockMs / 1_000])) > 0,

    /** Ends the flight, and stores its answer if there is one. `number`: that of the log's last entry. */
    async end(flight: Flight, number: number, outcome: "end" | "failed", answer?: CachedAnswer): Promise<void> {
      const { name, requestId, version } = flight;
      let object: string | undefined;
      const putObject = async (bytes: Buffer) => {
        object = `${name.folder}${requestId}`;
        await files.putCached(object, bytes);
        return object;
      };
      let failure: unknown;
      const isStorable = answer && Buffer.byteLength(answer.text) <= maxAnswerBytes;
      const entry = isStorable
        ? await encodeEntry(answer, version, putObject).catch((error: unknown) => {
            failure = error;
          })
        : undefined;
      const lifeMs = answer ? answer.expiresAt - clock.now() : 0;
      const stored = entry && lifeMs > 0 ? [version, Math.ceil(lifeMs), entry] : [];
      const keys = [name.flight, logOf(flight), name.entry, ...name.versions];
      const isStored = await ready().run(endScript, keys, [
        requestId,
        outcome,
        `0-${number + 1}`,
        keptLogMs,
        ...stored,
      ]);
      // The entries were deleted in the meantime.
      if (object !== undefined && isStored !== 1) await files.deleteCached(object);
      if (failure) throw failure;
    },

    /** Deletes the entries of an account, or those under one of its own keys, at once. Throws 503. */
    async clear(account: string, ownKey?: string): Promise<void> {
      if (!redis) return;
      const version = ownKey === undefined ? accountVersion(account) : ownKeyVersion(account, ownKey);
      try {
        await ready().redis.set(version, randomBase62(16), "PX", versionMs);
        await files.deleteCached(folderOf(account, ownKey));
      } catch (error) {
        throw noCapacity("The response cache is unavailable right now.", 1, error);
      }
    },

    close: (): void => redis?.disconnect(),
  };
}

type LogEntry = readonly [id: string, fields: readonly string[]];

function partOf(entries: readonly LogEntry[], after: number, isLed: boolean): LogPart {
  let last = after;
  let events = "";
  let headers: FoundAnswer["headers"] | undefined;
  const part = (state: LogPart["state"]): LogPart => ({ last, events, ...(headers && { headers }), state });
  for (const [id, [field, text = "", , announced]] of entries) {
    const number = Number(id.slice(2));
    // The beginning of the log was evicted.
    if (number !== last + 1) return part("failed");
    last = number;
    if (field === "end") return part("ended");
    if (field === "failed") return part("failed");
    events += text;
    if (announced !== undefined) headers = JSON.parse(announced) as FoundAnswer["headers"];
  }
  return part(isLed || entries.length > 0 ? "running" : "failed");
}
