import { noCapacity, ServiceError } from "#errors";
import type { ProviderJob } from "#files";
import type { StoredCall } from "#idempotency";
import type { PaidCall } from "#jobs";
import { retry } from "#platform/concurrency/retry";
import type { Delivery, RunCallDeps } from "./context.ts";

/** A call whose answer is stored under an `Idempotency-Key` continues without its caller and API instance. */
export const storesAnswer = ({ idempotencyKeyId }: PaidCall): boolean => idempotencyKeyId !== undefined;

/** The state that an earlier delivery left; empty for the first delivery. */
export interface Earlier {
  readonly answer?: StoredCall;
  readonly job?: ProviderJob;
}

const backoff = { firstMs: 500, maxMs: 500 };

/** Returns undefined if the call must not run, because its cost is captured or there is nothing to continue. */
export async function findEarlier(
  deps: RunCallDeps,
  payload: PaidCall,
  delivery: Delivery,
): Promise<Earlier | undefined> {
  const { idempotency, money, files, clock, log } = deps;
  const { account, requestId, idempotencyKeyId } = payload;
  if (delivery.count === 1) {
    if (idempotencyKeyId === undefined) return {};
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
    const answer = idempotencyKeyId === undefined ? undefined : await idempotency.stored(idempotencyKeyId, requestId);
    if (answer) return { answer };
    if (await money.entry(account, requestId)) return undefined;
    const job = await files.generated.findProviderJob(requestId);
    return job && { job };
  });
}

/**
 * Stores the answer before the cost is captured, so that no crash leaves a charge without its answer. Resolves with the
 * answer that counts: a worker that was presumed dead may have been faster.
 */
export async function storeAnswer(
  { idempotency, clock, log }: RunCallDeps,
  { idempotencyKeyId, requestId }: PaidCall,
  answer: StoredCall,
  signal: AbortSignal,
): Promise<StoredCall> {
  if (idempotencyKeyId === undefined) return answer;
  const retryIf = (error: unknown) => {
    if (error instanceof ServiceError) return false;
    log.warn({ err: (error as Error).message, requestId }, "a response could not be stored; retrying");
    return !signal.aborted;
  };
  // An answer that was finished when the call was aborted still gets one try.
  const ending = signal.aborted ? undefined : signal;
  return retry({ clock, signal: ending, backoff, retryIf }, async () => {
    if (await idempotency.store(idempotencyKeyId, requestId, answer)) return answer;
    const first = await idempotency.stored(idempotencyKeyId, requestId);
    if (first) return first;
    throw noCapacity("Another request is using the Idempotency-Key now.", 1);
  });
}
