/**
 * The response cache as calls use it: a lookup between the limits of a key and the admission of a call
 * (docs/guides/response-cache.md). A call that wants the cache is answered from it, waits for an equal one that runs, or runs
 * and is recorded. Without the cache's Redis it runs as if it had not asked. Nothing here is held, charged or queued.
 */
import type { Request, Response } from "express";
import { ServiceError } from "#errors";
import type { Files } from "#files";
import { fromTemplate, type ParsedCall, partsFrom } from "#formats";
import { object } from "#json";
import { allowsModel } from "#key-records";
import type { Keys, Slot } from "#keys";
import { formatUsd } from "#money";
import type { ByteBudget } from "#platform/byte-budget";
import { dayMs } from "#platform/clock";
import type { Background } from "#platform/concurrency/background";
import type { Uses } from "#platform/uses";
import {
  type CacheUse,
  type EntryName,
  entryName,
  type Flight,
  type FoundAnswer,
  type ResponseCache,
} from "#response-cache";
import type { ModelDeps } from "../admission/model.ts";
import { ownKeysFor } from "../admission/own-keys.ts";
import { namedModels } from "../admission/targets.ts";
import { passedHeaders } from "../call-payload.ts";
import { answerParts, beginStream, slicesOf, writeSlices } from "../http/answer.ts";
import { localsOf } from "../http/headers.ts";
import type { Unread } from "../http/unread.ts";
import type { EndedCall } from "../open-calls/index.ts";
import type { PaidRoute, RouteBody } from "../paid-route.ts";
import type { CacheRequest } from "./asked.ts";
import { createFollowers } from "./following.ts";
import { type CallRecording, createRecorder } from "./recording.ts";

export { cacheRequestOf } from "./asked.ts";
export type { CallRecording } from "./recording.ts";

interface Deps extends Uses<"clock" | "log">, ModelDeps {
  readonly keys: Keys;
  readonly responseCache: ResponseCache;
  readonly noteUse: (use: CacheUse) => void;
  readonly observeCall: (call: EndedCall) => void;
  readonly files: Files;
  /** Budget for answers that are recorded, and for streams that callers have not read. */
  readonly memory: ByteBudget;
  readonly unread: Unread;
  readonly background: Background;
  readonly pingIntervalMs: number;
  readonly ending: () => boolean;
}

/** A call that wants the cache. */
export interface CachedCall {
  readonly req: Request;
  readonly res: Response;
  readonly route: PaidRoute;
  readonly call: ParsedCall;
  readonly body: RouteBody;
  readonly slot: Slot;
  readonly asked: CacheRequest;
  /** Nobody waits for the answer on this connection. */
  readonly isDetached: boolean;
  /** Its body had a `previous_response_id`, which has been replaced by what it refers to. */
  readonly continues: boolean;
  /** It may wait for an equal call, and equal calls for it. */
  readonly canShare: boolean;
  /** Unix milliseconds. */
  readonly acceptedAt: number;
  readonly deadlineAt: number;
}

/** Longer answers are sent in slices. */
const smallBytes = 64 * 1024;

export type CachedAnswers = ReturnType<typeof createCachedAnswers>;

export function createCachedAnswers(deps: Deps) {
  const { responseCache: cache, unread, files, clock, log } = deps;
  const recorder = createRecorder({ ...deps, cache });
  const followers = createFollowers({ ...deps, cache, headersOf: streamHeaders });

  /** Throws 404 or 403 if the caller may not have answers of the models that the call names. */
  async function checkModels({ route, call, slot: { caller } }: CachedCall): Promise<void> {
    namedModels(deps, route, call, caller.models, await ownKeysFor(deps, caller));
  }

  const allows = ({ slot: { caller } }: CachedCall, { model }: FoundAnswer): boolean =>
    deps.catalog.find(model) !== undefined && allowsModel(caller.models, model);

  function note({ slot: { caller } }: CachedCall, use: Omit<CacheUse, "account" | "key">): void {
    deps.noteUse({ account: caller.account, key: caller.keyId, ...use });
  }

  /** `source`: the request that pays for the answer. */
  function noteHit(cached: CachedCall, source: string, savedNanoUsd: bigint, isShared: boolean): void {
    const { res, route, call, slot } = cached;
    note(cached, { outcome: "hit", savedNanoUsd, ...(isShared && { coalesced: true }) });
    const { endpoint } = route;
    deps.observeCall({ endpoint, status: 200, code: undefined });
    const { account, keyId: key } = slot.caller;
    const { requestId } = localsOf(res);
    log.info({ requestId, account, key, endpoint, stream: call.stream, cachedFrom: source, status: 200 }, "call");
  }

  /** Sends a stored answer. Throws 503 if there is no memory for it. */
  async function send(cached: CachedCall, answer: FoundAnswer, isShared: boolean): Promise<void> {
    const { res, route, call, slot } = cached;
    if (res.closed) return;
    unread.reserve(res, slot.caller.account, answer.bytes);
    const template = await answer.text();
    if (res.closed) return;
    const now = clock.now();
    const { requestId } = localsOf(res);
    const whole = () => fromTemplate(template, requestId, now);
    const inSlices = () =>
      writeSlices(res, slicesOf(partsFrom(template, requestId, now), call.isBinary ? "base64" : "utf8"));
    res.set(hitHeaders(answer, isShared, now));
    if (call.stream) {
      beginStream(res, route.codec.streamType);
      return inSlices();
    }
    res.set("x-xm-cost-usd", formatUsd(0n));
    if (route.answer) return route.answer({ files }, { res, text: whole(), format: call.answerFormat });
    if (answer.bytes <= smallBytes) return answerParts(res.status(200), [whole()]);
    res.status(200).setHeader("content-type", "application/json; charset=utf-8");
    inSlices();
  }

  /** Returns false if the call has to run: the caller may not have the answer, or its text or file is gone. */
  async function answered(cached: CachedCall, answer: FoundAnswer | undefined, isShared: boolean): Promise<boolean> {
    if (!answer || !allows(cached, answer)) return false;
    const { res } = cached;
    try {
      await send(cached, answer, isShared);
      noteHit(cached, answer.requestId, answer.costNanoUsd, isShared);
      return true;
    } catch (error) {
      if (error instanceof ServiceError && error.code === "no_capacity") throw error;
      log.info({ err: (error as Error).message, requestId: answer.requestId }, "a cached answer could not be sent");
      if (res.headersSent) res.destroy();
      else for (const name of ["x-xm-cost-usd", ...Object.keys(hitHeaders(answer, true, 0))]) res.removeHeader(name);
      return res.headersSent;
    }
  }

  function record(cached: CachedCall, flight: Flight): CallRecording {
    const { res, route, call, slot, asked, acceptedAt } = cached;
    const outcome = asked.mode === "refresh" ? "refresh" : "miss";
    note(cached, { outcome });
    if (!res.headersSent) res.set("x-xm-cache", outcome);
    return recorder.record({
      flight,
      account: slot.caller.account,
      format: route.framing === "completions" ? "chat" : route.format,
      stream: call.stream,
      ttlMs: asked.ttlSeconds * 1_000,
      // The files that the answer may refer to are younger than the call.
      notAfter: acceptedAt + dayMs,
    });
  }

  /** Waits for the answer of an equal call. Returns false if this call must run by itself. */
  async function followed(cached: CachedCall, flight: Flight): Promise<boolean> {
    const { res, route, call, slot, deadlineAt } = cached;
    const result = await followers.follow({
      flight,
      account: slot.caller.account,
      res,
      codec: route.codec,
      stream: call.stream,
      ...(call.isBinary && { isBinary: call.isBinary }),
      deadlineAt,
    });
    if (result.kind === "failed") return false;
    if (result.kind === "gone") {
      deps.observeCall({ endpoint: route.endpoint, status: 499, code: undefined });
      return true;
    }
    if (!call.stream) return answered(cached, result.answer, true);
    noteHit(cached, flight.leader, result.answer?.costNanoUsd ?? 0n, true);
    return true;
  }

  /** The part of a call in a flight, or undefined if it has its answer. */
  async function join(cached: CachedCall, name: EntryName): Promise<Flight | undefined> {
    const { res, asked, canShare } = cached;
    const { requestId } = localsOf(res);
    if (asked.mode === "refresh") return cache.beginAlone(name, requestId);
    await checkModels(cached);
    if (await answered(cached, await cache.find(name), false)) return undefined;
    if (!canShare) return cache.beginAlone(name, requestId);
    let flight = await cache.begin(name, requestId, false);
    if (!flight) {
      // An equal call has ended since the lookup.
      if (await answered(cached, await cache.find(name), true)) return undefined;
      flight = await cache.begin(name, requestId, true);
    }
    if (flight?.role !== "follower") return flight;
    return (await followed(cached, flight)) ? undefined : cache.beginAlone(name, requestId);
  }

  function bypass(cached: CachedCall): undefined {
    note(cached, { outcome: "bypass" });
    if (!cached.res.headersSent) cached.res.set("x-xm-cache", "bypass");
  }

  return {
    /**
     * Answers the call if the cache can. Otherwise resolves to the recording of the call, which must run, or to undefined if
     * the cache cannot be used. Throws what refuses the call: 403, 404, and errors of a call that waited.
     */
    async answer(cached: CachedCall): Promise<CallRecording | "answered" | undefined> {
      if (!isCacheable(cached) || !cache.isAvailable()) return bypass(cached);
      let flight: Flight | undefined;
      try {
        flight = await join(cached, nameOf(cached));
      } catch (error) {
        if (error instanceof ServiceError) throw error;
        log.warn({ err: (error as Error).message }, "the response cache could not be read");
        return bypass(cached);
      }
      return flight ? record(cached, flight) : "answered";
    },

    stop(): void {
      recorder.stop();
      cache.close();
    },
  };
}

/** Returns false for a call that a stored text cannot answer, or that refers to something that may be deleted or replaced. */
function isCacheable({ route, call, body, isDetached, continues }: CachedCall): boolean {
  if (!route.cacheable || isDetached || call.background || call.uploads.length > 0) return false;
  return !route.refersToStored || (object(body.value)["store"] === false && !continues);
}

function nameOf({ req, route, call, body, slot: { caller }, asked }: CachedCall): EntryName {
  return entryName(
    { account: caller.account, key: asked.scope === "key" ? caller.keyId : null },
    {
      endpoint: route.endpoint,
      model: route.model,
      models: call.models?.map(({ name }) => name) ?? [call.model],
      stream: call.isBinary ? "bytes" : call.stream,
      framing: route.framing,
      headers: passedHeaders(req, route.passed),
      body,
      ownKey: asked.key,
    },
  );
}

const hitHeaders = (
  { headers, requestId, storedAt, expiresAt }: FoundAnswer,
  isShared: boolean,
  now: number,
): Readonly<Record<string, string>> => ({
  ...headers,
  "x-xm-cache": "hit",
  "x-xm-cache-age": String(Math.max(0, Math.floor((now - storedAt) / 1_000))),
  "x-xm-cache-ttl": String(Math.max(0, Math.ceil((expiresAt - now) / 1_000))),
  "x-xm-cache-source": requestId,
  ...(isShared && { "x-xm-cache-coalesced": "true" }),
});

/** The headers of a stream that another call pays for, while that call runs. The life of the entry comes with the headers. */
const streamHeaders = ({ headers }: Pick<FoundAnswer, "headers">, { leader }: Flight) => ({
  ...headers,
  "x-xm-cache": "hit",
  "x-xm-cache-age": "0",
  "x-xm-cache-source": leader,
  "x-xm-cache-coalesced": "true",
});
