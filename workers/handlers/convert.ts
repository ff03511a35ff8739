import { setImmediate } from "node:timers/promises";
import { insufficientBalance, invalidValue, type ServiceError } from "#errors";
import { estimateTokens, type Format, formedRequest, outputBytes } from "#formats";
import { isOwnUpstream } from "#jobs";
import { isSet, type JsonObject, object } from "#json";
import { formatUsd } from "#money";
import {
  addCacheMarks,
  type CacheLifetime,
  completionsConverter,
  completionTokens,
  converters,
  convertRequest,
  type FormatConverter,
  geminiArrayConverter,
  ignoredParams,
  limitCacheControl,
  promptTokens,
  type ResponseIdentity,
  type StreamWriter,
  type TokenEstimate,
  tokenUsage,
} from "../conversion/index.ts";
import type { TextCall } from "../providers/index.ts";
import type { CallContext, CountedUsage } from "../run-call/context.ts";
import { runsInBackground } from "../run-call/stored-answer.ts";
import type { Candidate } from "../upstreams/index.ts";
import { responseState } from "./store-response.ts";
import { withTenantIds } from "./tenant-ids.ts";
import { withUploads } from "./uploads.ts";

/**
 * A call converted for one upstream, and the conversion of its answer. An upstream that speaks the caller's format gets the
 * body almost unchanged; otherwise both directions go through chat.
 */
export interface ConvertedCall {
  readonly call: Omit<TextCall, "signal" | "reserveMemory" | "log">;
  /** Ignored parameters: the caller's hints that this upstream does not get. */
  readonly ignored: readonly string[];
  answer(response: JsonObject): { readonly body: JsonObject; readonly counted: CountedUsage };
  stream(): StreamWriter;
}

export const callerFormat = ({ format = "chat" }: CallContext["payload"]): Format => format;

/** The caller's format if the upstream speaks it, else the upstream's first. */
export const upstreamFormat = ({ formats }: Candidate, caller: Format): Format =>
  formats.includes(caller) ? caller : (formats[0] ?? "chat");

const framed = { array: geminiArrayConverter, completions: completionsConverter };

export const callerConverter = (payload: CallContext["payload"]): FormatConverter =>
  payload.framing ? framed[payload.framing] : converters[callerFormat(payload)];

/**
 * Response headers: which of several models answered, with whose key if the account has keys of its own for the model, and
 * which parameters the upstream did not get.
 */
export function headersOf({ payload, record }: CallContext, ignored: readonly string[]) {
  const { target, upstream } = record.candidate ?? {};
  const model = payload.fallbacks && target?.model.id;
  const headers = {
    ...(model !== undefined && { "x-xm-model": model }),
    ...(target?.upstreams?.some(isOwnUpstream) && { "x-xm-upstream-key": upstream?.own ? "own" : "shared" }),
    ...(ignored.length > 0 && { "x-ignored-params": ignored.join(", ") }),
  };
  return Object.keys(headers).length > 0 ? { headers } : {};
}

/** The request in chat shape, to count or inspect it. Returns undefined if it cannot be converted. */
export function chatRequestOf({ payload, request }: CallContext): JsonObject | undefined {
  try {
    return callerConverter(payload).requestToChat(request).request;
  } catch {
    return undefined;
  }
}

/** Converts one call for whichever upstream serves it. */
export async function convertCall(call: CallContext) {
  const { payload, clock } = call;
  const { headers = {} } = payload;
  const caller = callerConverter(payload);
  const format = callerFormat(payload);
  const state = responseState(call);
  const now = () => Math.floor(clock.now() / 1000);
  const created = now();
  const identityOf = (model: string): ResponseIdentity => ({
    model,
    created,
    now,
    id: `chatcmpl-${payload.requestId}`,
    inputEstimate: payload.inputEstimate,
    ...(state && { state }),
    ...(runsInBackground(payload) && { background: true }),
  });
  const requestFor = await withUploads(call, caller);

  async function forCandidate(candidate: Candidate): Promise<ConvertedCall> {
    const { model, name = model.id } = candidate.target;
    const identity = identityOf(name);
    const request = await requestFor(candidate.upstream.provider);
    const spoken = upstreamFormat(candidate, format);
    const isolate = (body: JsonObject) =>
      spoken === "chat" || spoken === "responses" ? withTenantIds(body, payload.account) : body;
    const cacheLifetime = cacheLifetimeOf(candidate, spoken);
    const target = {
      model: candidate.model,
      capField: model.outputCapField,
      cap: capFor(call, candidate, spoken),
      quirks: candidate.upstream.quirks,
      hiddenReasoning: model.hiddenReasoning,
      cacheLifetime,
    };
    const { cacheWritePaysOff, minCachedTokens } = model;
    const addsMarks = payload.cacheMarks === "auto" && cacheLifetime !== "none" && cacheWritePaysOff;
    const withMarks = (body: JsonObject) => (addsMarks ? addCacheMarks(body, minCachedTokens) : body);
    if (spoken === format) {
      const { native } = caller;
      const limited = limitCacheControl(request, spoken === "messages" || spoken === "chat" ? cacheLifetime : "1h");
      const ignored = ignoredParams();
      for (const name of limited.ignored) ignored.add(name, true);
      const body = withMarks(native.prepare(limited.request, target, ignored));
      return {
        call: { format, model: candidate.model, body: isolate(body), headers },
        ignored: ignored.names(),
        answer(response) {
          const counted = usageOrEstimate(call, native.usage(response), () =>
            answerBytes(caller.responseToChat(response)),
          );
          return { body: native.finish(response, identity, estimateOf(call, counted)), counted };
        },
        stream: () => native.stream(identity),
      };
    }
    const upstream = converters[spoken];
    const { request: converted, ignored } = convertRequest(caller, upstream, request, target);
    const body = withMarks(converted);
    // A body in storage is large, so it is converted in one turn of the event loop and written in the next.
    if (!("json" in payload.body)) await setImmediate();
    return {
      call: { format: spoken, model: candidate.model, body: isolate(body), headers: {} },
      ignored,
      answer(response) {
        const answer = upstream.responseToChat(response);
        const counted = usageOrEstimate(call, answer["usage"], () => answerBytes(answer));
        const whole = converters.chat.native.finish(answer, identity, estimateOf(call, counted));
        return { body: caller.responseFromChat(whole, identity, request), counted };
      },
      stream: () => throughChat(upstream.streamToChat(), caller.streamFromChat(identity, request)),
    };
  }

  return {
    forCandidate,
    /** The events that end a stream before anything was written, for formats that send more than the error itself. */
    fail: (error: ServiceError) =>
      caller.streamFromChat(identityOf(payload.name ?? payload.model), call.request).fail?.(error),
  };
}

/** The estimate by bytes may be too low by this factor: code and other scripts take more tokens than English. */
const estimateMargin = 1.25;
/**
 * The estimate may also be too high, so the margin never cuts an answer below the first of these, nor the estimate below the
 * second.
 */
const [leastByMargin, leastByEstimate] = [8_192, 1_024];

/**
 * The output cap for one upstream, covered by the hold. If the caller set none, it is lowered to the remaining context,
 * because some servers refuse a prompt and cap that exceed it together, or it is not sent at all.
 */
function capFor(call: CallContext, { upstream, target }: Candidate, spoken: Format): number | undefined {
  const { inputEstimate } = call.payload;
  const { model, outputCap: cap, isCapDefault } = target;
  const { default_cap, min_response_cap } = upstream.quirks;
  if (isCapDefault) {
    if (default_cap === "omit") return undefined;
    const remaining = model.contextLength - inputEstimate;
    const withMargin = model.contextLength - Math.ceil(inputEstimate * estimateMargin);
    return Math.min(cap, Math.max(withMargin, Math.min(remaining, leastByMargin), leastByEstimate));
  }
  if (spoken === "responses" && cap < min_response_cap) refuseCap(call, min_response_cap);
  return cap;
}

function refuseCap({ payload: { format = "chat" }, request }: CallContext, minimum: number): never {
  const given = format === "gemini" ? object(formedRequest(request)) : request;
  const valueAt = (path: string) => path.split(".").reduce<unknown>((holder, field) => object(holder)[field], given);
  const param = capFields[format].find((path) => isSet(valueAt(path)));
  if (param === undefined)
    throw insufficientBalance(
      `The balance does not cover ${minimum} output tokens, which is the minimum of this model.`,
    );
  throw invalidValue(param, `${param} must be at least ${minimum} for this model.`);
}

const capFields: Readonly<Record<Format, readonly string[]>> = {
  chat: ["max_completion_tokens", "max_tokens"],
  messages: ["max_tokens"],
  responses: ["max_output_tokens"],
  gemini: ["generationConfig.maxOutputTokens"],
};

/** Cache writes need a price, and chat servers do not support breakpoints. */
function cacheLifetimeOf({ target }: Candidate, spoken: Format): CacheLifetime {
  const { features, pricing } = target.model;
  if (spoken !== "messages" || !("cache_write" in pricing)) return "none";
  return features.has("cache_retention") ? "1h" : "5m";
}

function throughChat(reader: ReturnType<FormatConverter["streamToChat"]>, writer: StreamWriter): StreamWriter {
  return {
    ...writer,
    write(event) {
      let text = "";
      for (const chunk of reader.write(event)) text += writer.write(chunk);
      return text;
    },
    usage: (soFar) => reader.usage(soFar) ?? writer.usage(soFar),
  };
}

/** The usage that the provider reports, else an estimate by bytes. */
export function usageOrEstimate({ payload }: CallContext, usage: unknown, bytes: () => number): CountedUsage {
  const reported = tokenUsage(usage);
  if (reported) return { usage: reported, estimated: false };
  return { usage: { input: payload.inputEstimate, output: estimateTokens(bytes()) }, estimated: true };
}

/** Usage for the caller's format where the provider reported none, and the cost. */
export const estimateOf = (call: CallContext, counted: CountedUsage): TokenEstimate => ({
  input: promptTokens(counted.usage),
  output: completionTokens(counted.usage),
  costUsd: formatUsd(call.chargeOf(counted)),
  ...(call.record.candidate?.upstream.own && { isByok: true }),
});

function answerBytes({ choices }: JsonObject): number {
  const all = Array.isArray(choices) ? (choices as JsonObject[]) : [];
  return all.reduce((sum, { message }) => sum + outputBytes((message ?? {}) as JsonObject), 0);
}
