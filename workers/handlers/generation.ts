import type { Model } from "#catalog";
import { invalidValue, ServiceError } from "#errors";
import type { MediaInput } from "#formats";
import { type JsonObject, object } from "#json";
import type { Generated, GenerationCall } from "../providers/index.ts";
import type { CallContext } from "../run-call/context.ts";
import type { Candidate } from "../upstreams/index.ts";

/**
 * Prepares the input with the model's defaults from this worker's catalog, which may differ from the API's. The returned
 * `ask` asks an upstream to generate from it.
 */
export async function prepare(call: CallContext, parsed: MediaInput) {
  const { payload, catalog, model, files, counting, signal, disconnected, reserveMemory, log, job } = call;
  const input = withoutOnlyFormat(model, catalog.checkInput(model, parsed.input));
  const { task } = model;
  if (!task) throw new TypeError(`the model '${model.id}' generates no files`);
  const uploads = await files.uploads.resolve(payload.account, parsed.uploads, signal);
  let isResumable = job !== undefined;
  const reportProgress = progressReporter(call);

  const ask = async (
    { upstream, model }: Candidate,
    signal: AbortSignal,
    span: GenerationCall["span"],
    store: GenerationCall["store"],
  ): Promise<Generated> => {
    // No provider starts work for a disconnected caller.
    if (!job) disconnected.throwIfAborted();
    return upstream.provider.generate({
      task,
      model,
      input,
      uploads,
      job: job?.job,
      ...(reportProgress && { reportProgress }),
      async remember(id) {
        await files.generated.storeProviderJob(payload.requestId, {
          upstream: upstream.id,
          key: upstream.own?.id,
          job: id,
        });
        isResumable = true;
      },
      store,
      secondsOf: (bytes, mime, id) => counting.secondsOf({ bytes, mime, account: payload.account, id }, signal),
      reserveMemory,
      signal,
      disconnected,
      log,
      span,
    });
  };

  return { input, ask, isResumable: () => isResumable };
}

const progressIntervalMs = 5_000;

/** Stores the progress of a job for those who poll it, at most every few seconds. Nobody can see that of other calls. */
function progressReporter({ payload, detachedCalls, clock, log }: CallContext): GenerationCall["reportProgress"] {
  if (!payload.detached) return undefined;
  const { account, requestId } = payload;
  let last = { percent: 0, at: Number.NEGATIVE_INFINITY };
  return (told) => {
    const percent = typeof told === "number" && told > 0 ? Math.min(100, Math.floor(told)) : 0;
    const now = clock.now();
    if (percent <= last.percent || now - last.at < progressIntervalMs) return;
    last = { percent, at: now };
    detachedCalls.setProgress(account, requestId, percent).catch((error: Error) => {
      log.debug({ err: error.message }, "the progress of a job could not be stored");
    });
  };
}

/** Removes `format` if the model has only one: OpenAI's clients send it, but the provider does not know it. */
function withoutOnlyFormat({ media }: Model, input: JsonObject): JsonObject {
  const formats = object(object(media?.schema["properties"])["format"])["enum"];
  if (!Array.isArray(formats) || formats.length !== 1) return input;
  const { format: _, ...rest } = input;
  return rest;
}

/** Only the upstream that has the job can continue it, with the key that began it. */
export const withJob = (call: CallContext): CallContext => {
  const { job, targets } = call;
  if (!job) return call;
  const { upstream, key } = job;
  const upstreams = [key === undefined ? upstream : { upstream, key }];
  return { ...call, targets: targets.map((target) => ({ ...target, upstreams })) };
};

/** Providers name their own fields, which callers send inside `input`. */
export function inInput(error: unknown): unknown {
  if (!(error instanceof ServiceError) || error.code !== "invalid_value" || error.param === undefined) return error;
  return /^input\b/.test(error.param) ? error : invalidValue(`input.${error.param}`, error.message);
}
