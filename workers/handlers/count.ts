import { invalidValue, ServiceError } from "#errors";
import { countedRequest, type Format } from "#formats";
import type { JsonObject } from "#json";
import { converters, convertRequest } from "../conversion/index.ts";
import { type Provider, UpstreamFailure } from "../providers/index.ts";
import type { Answer, CallContext } from "../run-call/context.ts";
import type { Candidate, Target } from "../upstreams/index.ts";
import { type ConvertedCall, callerConverter, callerFormat, chatRequestOf, upstreamFormat } from "./convert.ts";
import { withUploads } from "./uploads.ts";

const providerTimeoutMs = 10_000;

/**
 * Counts the tokens of a request, which is free. `x-xm-token-count` tells whether a provider counted them or they are
 * estimated.
 */
export async function count(call: CallContext): Promise<Answer> {
  const { tokens, isExact } = await countInput({ ...call, targets: call.targets.slice(0, 1) });
  call.reply.announce({ "x-xm-token-count": isExact ? "provider" : "estimate" });
  return { text: JSON.stringify(answerOf(callerFormat(call.payload), tokens)), usage: {}, estimated: !isExact };
}

function answerOf(format: Format, tokens: number): JsonObject {
  if (format === "gemini") return { totalTokens: tokens };
  return { ...(format === "responses" && { object: "response.input_tokens" }), input_tokens: tokens };
}

/** The input tokens of a call, counted by a provider if one can, else estimated. */
export async function countInput(call: CallContext): Promise<{ readonly tokens: number; readonly isExact: boolean }> {
  const { payload } = call;
  const request = callerFormat(payload) === "gemini" ? countedRequest(call.request) : call.request;
  const counting = { ...call, request };
  const requestFor = await withUploads(counting, callerConverter(payload));
  const exact = await countByProvider(counting, async (candidate) =>
    countRequest(counting, await requestFor(candidate.upstream.provider), candidate),
  );
  return { tokens: exact ?? (await estimate(counting)), isExact: exact !== undefined };
}

/**
 * A document can hold more pages and text than its size suggests, and would then cost more than the hold. Keeps only the
 * models for which the hold covers the document, by the rules of each model's provider. Throws a 400 naming the document if
 * none is left, before any provider is called.
 */
export async function withoutDenseFiles(call: CallContext): Promise<CallContext> {
  const { fileBound } = call.payload;
  if (!fileBound) return call;
  const targets: Target[] = [];
  for (const target of call.targets) {
    const tokens = await estimate({ ...call, model: target.model });
    if (tokens <= (target.fileBound ?? fileBound).tokens) targets.push(target);
  }
  if (targets.length > 0) return { ...call, targets };
  const { param } = fileBound;
  throw invalidValue(
    param,
    `${param}: the document contains more than is accepted for its size; send its text, or fewer pages.`,
  );
}

/**
 * Returns undefined if no upstream of the model counts or none is available. Throws the provider's refusals. Other failures
 * do not reach the upstream's breaker: providers limit counting separately, and counts are free, so they must not block paid
 * calls.
 */
async function countByProvider(
  call: CallContext,
  requestFor: (candidate: Candidate) => Promise<ConvertedCall["call"]>,
): Promise<number | undefined> {
  const { upstreams, reserveMemory, log, clock } = call;
  const timeout = new AbortController();
  const stop = clock.after(providerTimeoutMs, () => timeout.abort());
  const request = {
    ...call,
    signal: AbortSignal.any([call.signal, timeout.signal]),
    supports: (provider: Provider) => provider.count !== undefined,
  };
  try {
    return await upstreams.once(request, async (candidate, signal, span) => {
      const body = await requestFor(candidate);
      const { id, provider } = candidate.upstream;
      return provider.count?.({ ...body, signal, reserveMemory, log, span }).catch((error: unknown) => {
        if (!(error instanceof UpstreamFailure) || error.kind === "refused") throw error;
        log.info({ upstream: id, kind: error.kind, reason: error.message }, "the provider could not count the tokens");
        throw new Error("the provider did not count", { cause: error });
      });
    });
  } catch (error) {
    call.signal.throwIfAborted();
    if (error instanceof ServiceError && error.status === 400) throw error;
    return undefined;
  } finally {
    stop();
  }
}

/** A request in the caller's own format is passed through: nothing is generated, so there is no cap to set. */
function countRequest(
  { payload, model }: CallContext,
  request: JsonObject,
  candidate: Candidate,
): ConvertedCall["call"] {
  const format = callerFormat(payload);
  const spoken = upstreamFormat(candidate, format);
  const target = { model: candidate.model, capField: model.outputCapField, cap: model.maxOutputTokens };
  if (spoken === format) {
    const { native } = callerConverter(payload);
    const own = native.withoutForeignState?.(request, target.model) ?? request;
    const body = { ...own, model: target.model };
    return { format, model: target.model, body, headers: payload.headers ?? {} };
  }
  const { request: body } = convertRequest(callerConverter(payload), converters[spoken], request, target);
  return { format: spoken, model: target.model, body, headers: {} };
}

/** Uses the tokenizer, or the bytes of a request that cannot be converted to chat. */
async function estimate(call: CallContext): Promise<number> {
  const { counting, payload, model, signal } = call;
  const chat = chatRequestOf(call);
  return chat ? counting.estimate({ ...chat, model: model.id }, signal, model.ownedBy) : payload.inputEstimate;
}
