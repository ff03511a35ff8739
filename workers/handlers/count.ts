import { invalidValue, ServiceError } from "#errors";
import { countAnswer, countedRequest } from "#formats";
import { converters, convertRequest } from "../conversion/index.ts";
import { type JsonObject, type TextCall, UpstreamFailure } from "../providers/index.ts";
import type { Answer, Attempt } from "../run-call.ts";
import type { AskedUpstream } from "../upstreams/index.ts";
import { chatOf, converterOf, formatOf, spokenBy } from "./convert.ts";
import { withUploads } from "./uploads.ts";

/** A provider that counts for longer than this is not waited for. */
const providerMs = 10_000;

/**
 * The tokens of a request, which costs nothing: as the provider counts them where one can be asked, else by an estimate;
 * `x-xm-token-count` says which it was.
 */
export async function count(attempt: Attempt): Promise<Answer> {
  const { tokens, isExact } = await countInput(attempt);
  attempt.reply.announce({ "x-xm-token-count": isExact ? "provider" : "estimate" });
  const body = formatOf(attempt.payload) === "gemini" ? countAnswer(tokens) : { input_tokens: tokens };
  return { text: JSON.stringify(body), usage: {}, estimated: !isExact };
}

/**
 * The tokens of what a call asks: as a provider counts them where one can be asked, else by an estimate. Asking costs
 * nothing and is no attempt of the call.
 */
export async function countInput(attempt: Attempt): Promise<{ readonly tokens: number; readonly isExact: boolean }> {
  const { payload } = attempt;
  const request = formatOf(payload) === "gemini" ? countedRequest(attempt.request) : attempt.request;
  const asking = { ...attempt, request };
  const requestFor = await withUploads(asking, converterOf(payload));
  const exact = await askProvider(asking, async (asked) => callFor(asking, await requestFor(asked.provider), asked));
  return { tokens: exact ?? (await estimate(asking)), isExact: exact !== undefined };
}

/**
 * A document can hold more pages and text than its bytes let expect: then it would be billed beyond what is held. Throws
 * 400 naming it, before any provider is asked.
 */
export async function refuseDenseFiles(attempt: Attempt): Promise<void> {
  const { fileBound } = attempt.payload;
  if (!fileBound || (await estimate(attempt)) <= fileBound.tokens) return;
  const { param } = fileBound;
  throw invalidValue(
    param,
    `${param}: the document holds more than its size allows here; send its text, or fewer pages.`,
  );
}

type CountCall = Omit<TextCall, "signal" | "log">;

/**
 * Undefined where no upstream of the model counts, or none can be asked now. Throws what the provider refuses. No failure is
 * told to the upstream's breaker: providers limit counting apart, and counts are free, so nobody's may keep paid calls away.
 */
async function askProvider(
  attempt: Attempt,
  callFor: (asked: AskedUpstream) => Promise<CountCall>,
): Promise<number | undefined> {
  const { model, upstreams, signal, progress, log, clock } = attempt;
  const limit = new AbortController();
  const stop = clock.after(providerMs, () => limit.abort());
  try {
    return await upstreams.once(
      model,
      AbortSignal.any([signal, limit.signal]),
      progress,
      async (asked, signal) => {
        const call = await callFor(asked);
        return asked.provider.count?.({ ...call, signal, log }).catch((error: unknown) => {
          if (!(error instanceof UpstreamFailure) || error.kind === "refused") throw error;
          log.info(
            { upstream: progress.upstream, kind: error.kind, reason: error.message },
            "the provider did not count",
          );
          throw new Error("the provider did not count", { cause: error });
        });
      },
      log,
      (provider) => provider.count !== undefined,
    );
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ServiceError && error.status === 400) throw error;
    return undefined;
  } finally {
    stop();
  }
}

/** Untouched in the caller's own format: nothing is asked to be made, so there is no cap. */
function callFor({ payload, model }: Attempt, request: JsonObject, asked: AskedUpstream): CountCall {
  const format = formatOf(payload);
  const spoken = spokenBy(asked, format);
  if (spoken === format)
    return { format, model: asked.model, body: { ...request, model: asked.model }, headers: payload.headers ?? {} };
  const to = { model: asked.model, capField: model.outputCapField, cap: model.maxOutputTokens };
  const { request: body } = convertRequest(converterOf(payload), converters[spoken], request, to);
  return { format: spoken, model: asked.model, body, headers: {} };
}

/** By the tokenizer; what cannot be read as chat, by its bytes. */
async function estimate(attempt: Attempt): Promise<number> {
  const { counting, payload, model, signal } = attempt;
  const chat = chatOf(attempt);
  return chat ? counting.estimate({ ...chat, model: model.id }, signal, model.ownedBy) : payload.inputEstimate;
}
