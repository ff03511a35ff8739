import type { Response } from "express";
import { noCapacity, type ServiceError, upstreamTimeout } from "#errors";
import { type Codec, fromTemplate } from "#formats";
import type { ByteBudget } from "#platform/byte-budget";
import type { Uses } from "#platform/uses";
import type { Flight, FoundAnswer, LogPart, ResponseCache } from "#response-cache";
import {
  checkPause,
  endEvents,
  shuttingDown,
  type WrittenAnswer,
  writeError,
  writeEvents,
  writePing,
  writtenAnswer,
} from "../open-calls/index.ts";

/** A request that waits for the answer of an equal one. */
export interface FollowingRequest {
  readonly flight: Flight;
  readonly account: string;
  readonly res: Response;
  readonly codec: Codec;
  readonly stream: boolean;
  readonly isBinary?: true;
  /** Unix milliseconds. */
  readonly deadlineAt: number;
}

/**
 * `answered`: a stream has been written; another answer is to be sent. `gone`: the caller disconnected, or its stream ended
 * with an error. `failed`: there is no answer, and nothing was written but pings.
 */
export type Followed =
  | { readonly kind: "answered"; readonly answer: FoundAnswer | undefined }
  | { readonly kind: "gone" }
  | { readonly kind: "failed" };

interface Follower extends FollowingRequest {
  readonly written: WrittenAnswer;
  /** The last entry of the log that it has. */
  last: number;
  /** The polls in a row that found nothing new. */
  silentPolls: number;
  readonly resolve: (followed: Followed) => void;
  readonly reject: (error: unknown) => void;
}

interface FollowerDeps extends Uses<"clock" | "log"> {
  readonly cache: ResponseCache;
  readonly memory: ByteBudget;
  readonly pingIntervalMs: number;
  /** Returns true shortly before a shutdown aborts the open calls. */
  readonly ending: () => boolean;
  /** The headers with which a stream that another call pays for begins. */
  readonly headersOf: (part: Pick<FoundAnswer, "headers">, flight: Flight) => Readonly<Record<string, string>>;
}

const pollMs = 25;
/** A log that was silent for this many polls is read less often. */
const maxSilentPolls = 40;
const silentInterval = 4;
/** Callers are looked after once in this many polls. */
const tickPolls = 20;

const leaderFailed = () => noCapacity("The call whose response this one shared has failed; nothing was charged.", 1);
/** It may be repeated: it has not run. */
const outOfTime = () => upstreamTimeout("The call ran out of time.");
/** The cache may be out of reach for this long before those who wait go on. */
const unreadMs = 1_000;

/** The requests of this process that wait for the answers of equal ones. One poller reads the logs for all of them. */
export function createFollowers(deps: FollowerDeps) {
  const { cache, memory, pingIntervalMs, ending, headersOf, clock, log } = deps;
  const followers = new Set<Follower>();
  let polls = 0;
  /** Unix milliseconds: the last time that the logs could be read. */
  let readAt = 0;
  let isPolling = false;
  let stopPolling: (() => void) | undefined;

  /** Ends the following. The caller of `follow` goes on. */
  function remove(follower: Follower, end: () => void): void {
    if (!followers.delete(follower)) return;
    follower.written.unsent.close();
    end();
    if (followers.size > 0) return;
    stopPolling?.();
    stopPolling = undefined;
  }

  function leave(follower: Follower, end: () => void): void {
    if (!followers.has(follower)) return;
    remove(follower, end);
    // One that is not heard of is not counted after some seconds.
    cache.leave(follower.flight).catch(() => {});
  }

  function fail(follower: Follower): void {
    const { written, resolve } = follower;
    if (written.hasContent && followers.has(follower)) writeError(written, leaderFailed());
    leave(follower, () => resolve({ kind: written.hasContent ? "gone" : "failed" }));
  }

  function deliver(follower: Follower, part: LogPart): void {
    const { written, flight, res, stream } = follower;
    follower.silentPolls = part.last > follower.last ? 0 : follower.silentPolls + 1;
    follower.last = part.last;
    if (!stream || part.events === "") return;
    if (!written.hasContent && !res.headersSent) res.set(headersOf({ headers: part.headers ?? {} }, flight));
    writeEvents(written, fromTemplate(part.events, flight.requestId, clock.now()), clock.now());
  }

  /** Followers of one log at one position. They share what is read. */
  async function deliverAll(group: readonly Follower[], part: LogPart): Promise<void> {
    for (const follower of group) deliver(follower, part);
    if (part.state === "failed") for (const follower of group) fail(follower);
    if (part.state !== "ended") return;
    const [{ flight }] = group as [Follower];
    const answer = await cache.find(flight.name).catch(() => undefined);
    const own = answer?.requestId === flight.leader ? answer : undefined;
    for (const follower of group) {
      const { written, stream, resolve } = follower;
      if (!followers.has(follower)) continue;
      if (!stream && !own) fail(follower);
      else {
        if (stream) endEvents(written);
        remove(follower, () => resolve({ kind: "answered", answer: own }));
      }
    }
  }

  function tick(): void {
    const now = clock.now();
    for (const follower of followers) {
      const { written, res, stream, deadlineAt, reject } = follower;
      const end = (error: ServiceError) => {
        if (written.hasContent) writeError(written, error);
        leave(follower, () => reject(error));
      };
      checkPause(written);
      if (now >= deadlineAt) end(outOfTime());
      else if (ending()) end(shuttingDown());
      else if (stream && !res.closed && now - written.lastWriteAt >= pingIntervalMs) writePing(written, now);
    }
  }

  async function poll(): Promise<void> {
    if (polls++ % tickPolls === 0) tick();
    const isDue = ({ silentPolls, written }: Follower) =>
      !written.isPaused && (silentPolls < maxSilentPolls || polls % silentInterval === 0);
    const due = followers.values().filter(isDue);
    const groups = [
      ...Map.groupBy(due, ({ flight, last }) => `${flight.name.flight} ${flight.leader} ${last}`).values(),
    ];
    if (groups.length === 0) {
      readAt = clock.now();
      return;
    }
    const flights = groups.map(([first]) => (first as Follower).flight);
    try {
      // Silent logs are among those of such a poll.
      if (polls % tickPolls === 0) await cache.stay(flights);
      const parts = await cache.read(groups.map(([first]) => [(first as Follower).flight, (first as Follower).last]));
      await Promise.all(groups.map((group, at) => deliverAll(group, parts[at] as LogPart)));
      readAt = clock.now();
    } catch (error) {
      if (clock.now() - readAt < unreadMs) return;
      log.warn({ err: (error as Error).message }, "the response cache could not be read");
      for (const follower of followers) fail(follower);
    }
  }

  function pollOnce(): void {
    if (isPolling) return;
    isPolling = true;
    void poll().finally(() => {
      isPolling = false;
    });
  }

  return {
    /** Resolves when the followed call has ended. Rejects with the error to answer, which a begun stream has already. */
    follow(request: FollowingRequest): Promise<Followed> {
      const { promise, resolve, reject } = Promise.withResolvers<Followed>();
      const { res, account } = request;
      const written = writtenAnswer(request, memory, account, clock.now());
      const follower: Follower = { ...request, written, last: 0, silentPolls: 0, resolve, reject };
      followers.add(follower);
      if (!stopPolling) readAt = clock.now();
      stopPolling ??= clock.every(pollMs, pollOnce);
      const onClose = () => leave(follower, () => resolve({ kind: "gone" }));
      if (res.closed) onClose();
      else res.once("close", onClose);
      return promise;
    },
  };
}
