import type { LineCall } from "#batches";
import type { StoredAnswer, StoredError } from "#detached-calls";
import { noCapacity, ServiceError } from "#errors";
import type { ProviderJob } from "#files";
import type { PaidCall } from "#jobs";
import type { JsonObject } from "#json";
import type { LedgerEntry } from "#money";
import { retry } from "#platform/concurrency/retry";
import type { EventLogWriter } from "#stored-responses";
import type { Answer, Delivery, RunCallDeps } from "./context.ts";

/** A response in the background, which no reply stream carries. */
export const runsInBackground = ({ detached }: PaidCall): boolean => detached?.background !== undefined;

/** A call whose answer is stored continues without its caller and API instance. */
export const storesAnswer = ({ idempotencyKeyId, detached, batch }: PaidCall): boolean =>
  idempotencyKeyId !== undefined || detached !== undefined || batch !== undefined;

const lineOf = ({ account, requestId, batch }: PaidCall): LineCall | undefined =>
  batch && { account, requestId, line: batch.line };

/** The state that an earlier delivery left; empty for the first delivery. */
export interface Earlier {
  readonly answer?: StoredAnswer;
  readonly job?: ProviderJob;
}

const backoff = { firstMs: 500, maxMs: 500 };

/** Returns undefined if the call must not run, because its cost is captured or there is nothing to continue. */
export async function findEarlier(
  deps: RunCallDeps,
  payload: PaidCall,
  delivery: Delivery,
): Promise<Earlier | undefined> {
  const { batches, detachedCalls, money, files, clock, log } = deps;
  const { account, requestId } = payload;
  const line = lineOf(payload);
  if (delivery.count === 1) {
    if (!storesAnswer(payload) || line) return {};
    // If the API instance seemed dead, the next request with the key has ended the call. If MongoDB is unavailable, the
    // capture will tell.
    return (await money.entry(account, requestId).catch(() => undefined)) ? undefined : {};
  }
  // Wait for MongoDB: state that is not found would be lost.
  const retryIf = (error: unknown) => {
    log.warn(
      { err: (error as Error).message, requestId },
      "the state of an earlier delivery could not be read; retrying",
    );
    return clock.now() < payload.deadlineAt;
  };
  return retry({ clock, backoff, retryIf }, async () => {
    const stored = () => (line ? batches.lines.answer(line) : detachedCalls.answer(account, requestId));
    const answer = storesAnswer(payload) ? await stored() : undefined;
    if (answer) return { answer };
    if (await money.entry(account, requestId)) return undefined;
    const job = await files.generated.findProviderJob(requestId);
    return job && { job };
  });
}

const retrying = ({ clock, log }: RunCallDeps, requestId: string, signal: AbortSignal | undefined, what: string) => ({
  clock,
  signal,
  backoff,
  retryIf(error: unknown) {
    if (error instanceof ServiceError) return false;
    log.warn({ err: (error as Error).message, requestId }, `${what} could not be stored; retrying`);
    return !signal?.aborted;
  },
});

/** An answer with its cost. */
type CostedAnswer = Omit<StoredAnswer, "text"> & Pick<Answer, "text">;

/**
 * Stores the answer before the cost is captured, so that no crash leaves a charge without its answer. Resolves with the
 * answer that counts: a worker that was presumed dead may have been faster. Rejects if the line of a batch has ended
 * otherwise, or is tried again.
 */
export function storeAnswer(
  deps: RunCallDeps,
  payload: PaidCall,
  costed: CostedAnswer,
  signal: AbortSignal,
): Promise<CostedAnswer> {
  const { account, requestId } = payload;
  if (!storesAnswer(payload)) return Promise.resolve(costed);
  const { text } = costed;
  const answer = { ...costed, text: typeof text === "string" ? text : text.join("") };
  // An answer that was finished when the call was aborted still gets one try.
  const ending = signal.aborted ? undefined : signal;
  const line = lineOf(payload);
  return retry(retrying(deps, requestId, ending, "a response"), async () => {
    if (line) {
      if (await deps.batches.lines.storeAnswer(line, answer)) return answer;
      throw noCapacity("The line was ended elsewhere; nothing was charged.");
    }
    const stored = await deps.detachedCalls.storeAnswer(account, requestId, answer);
    return stored ?? answer;
  });
}

/** Stores why a job, or a line of a batch, fails, before its hold is released. `output`: what there is of a response in the background. */
export async function storeError(
  deps: RunCallDeps,
  payload: PaidCall,
  error: StoredError,
  output?: readonly JsonObject[],
) {
  const { account, requestId, detached } = payload;
  const line = lineOf(payload);
  if (line)
    return retry(retrying(deps, requestId, undefined, "an error"), () =>
      deps.batches.lines.storeError(line, error.fields),
    );
  if (!detached) return;
  const json = output && JSON.stringify(output);
  const store = (text: string | undefined) =>
    retry(retrying(deps, requestId, undefined, "an error"), () =>
      deps.detachedCalls.storeError(account, requestId, error, text),
    );
  await store(json).catch((cause: unknown) => {
    deps.log.warn({ err: cause, requestId }, "the output of a response that ended early could not be stored");
    return store(undefined);
  });
}

/** Stores the events of a response in the background, so that its stream can be read after its end. */
export async function storeEvents(
  deps: RunCallDeps,
  { account, requestId }: PaidCall,
  events: EventLogWriter | undefined,
  signal: AbortSignal,
): Promise<void> {
  const text = await events?.text();
  if (!events || text === undefined) return;
  const ending = signal.aborted ? undefined : signal;
  await retry(retrying(deps, requestId, ending, "the events of a response"), () =>
    deps.detachedCalls.storeEvents(account, requestId, text, events.last()),
  ).catch((error: unknown) => {
    deps.log.warn({ err: error, requestId }, "a stream in the background cannot be read after its end");
  });
}

/** Copies the outcome of a job from its entry, and deletes its body. If that fails, scheduled jobs do it. */
export async function endDetached(deps: RunCallDeps, payload: PaidCall, entry: LedgerEntry): Promise<void> {
  const { account, requestId, detached, batch, body } = payload;
  if (!detached && !batch) return;
  try {
    if (detached) await deps.detachedCalls.end(account, requestId, entry);
    if ("stored" in body) await deps.files.deleteBody(requestId);
  } catch (error) {
    deps.log.warn({ err: (error as Error).message, requestId }, "the end of a job could not be recorded");
  }
}
