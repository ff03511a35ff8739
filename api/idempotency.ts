import type { Response } from "express";
import type { Reserve } from "#detached-calls";
import { generationInProgress, noCapacity, ServiceError } from "#errors";
import type { Claim, ClaimRequest, IdempotencyStore, Owner } from "#idempotency";
import { sleep } from "#platform/clock";
import { retry } from "#platform/concurrency/retry";
import type { Uses } from "#platform/uses";

export interface IdempotencyDeps extends Uses<"clock" | "log"> {
  readonly idempotency: IdempotencyStore;
  /** Resolves to true while some process may still finish the request. */
  readonly isAlive: (owner: Owner) => Promise<boolean>;
  /** Returns true shortly before a shutdown aborts the open calls. */
  readonly ending: () => boolean;
}

/** An `Idempotency-Key`, and a hash of everything that determines the answer. */
export interface IdempotencyRequest {
  readonly key: string;
  readonly hash: string;
}

/** Either this request holds the key, or an earlier one has been answered. */
export type Claimed = Exclude<Claim, { kind: "running" }>;
export const isSettled = (claim: Claim): claim is Claimed => claim.kind !== "running";
/** A caller who asks for a job does not wait for one that runs. */
export const isSettledOrJob = (claim: Claim): claim is Claim => claim.kind !== "running" || claim.isJob;

const pollMs = { first: 100, max: 2_000 };
const releaseBackoff = { firstMs: 1_000, maxMs: 1_000 };

/** Claims an `Idempotency-Key` for this request, or waits until the request that holds it is `settled`. */
export async function claimKey<Settled extends Claim>(
  { idempotency, isAlive, ending, clock }: IdempotencyDeps,
  request: ClaimRequest,
  /** `answerBy` is in unix milliseconds. `reserve` is called before a stored answer is read. */
  waiting: { readonly answerBy: number; readonly res: Response; readonly reserve?: Reserve },
  settled: (claim: Claim) => claim is Settled,
): Promise<Settled> {
  for (let pauseMs = pollMs.first; ; pauseMs = Math.min(pollMs.max, pauseMs * 1.5)) {
    const claim = await idempotency.claim(request, isAlive, waiting.reserve).catch(throwUnavailable);
    if (settled(claim)) return claim;
    const remainingMs = waiting.answerBy - clock.now();
    if (remainingMs <= 0 || waiting.res.closed) throw generationInProgress();
    if (ending()) throw noCapacity("This instance is shutting down; repeat the request.", 1);
    await sleep(clock, Math.min(pauseMs, remainingMs));
  }
}

/** Resolves to true if work is running or an answer is stored under the key. */
export const hasBegun = (
  { idempotency, isAlive }: Pick<IdempotencyDeps, "idempotency" | "isAlive">,
  work: { readonly account: string; readonly key: string },
): Promise<boolean> => idempotency.has(work, isAlive).catch(throwUnavailable);

function throwUnavailable(error: unknown): never {
  if (error instanceof ServiceError) throw error;
  throw noCapacity("The Idempotency-Key cannot be looked up right now.", 1, error);
}

/**
 * Releases the key of a request that failed. Resolves after the first attempt, so that no caller waits for an unavailable
 * store, and keeps retrying in the background: nothing else releases the key while this process lives.
 */
export async function releaseKey(
  { idempotency, clock, log }: Pick<IdempotencyDeps, "idempotency" | "clock" | "log">,
  id: string,
  requestId: string,
): Promise<void> {
  const release = async () => {
    try {
      await idempotency.release(id, requestId);
    } catch (error) {
      log.warn({ err: (error as Error).message, requestId }, "an idempotency key could not be released; retrying");
      throw error;
    }
  };
  await release().catch(() => void retry({ clock, backoff: releaseBackoff }, release));
}

/** Marks the answer as that of an earlier request, whose id names the charge. */
export function markReplayed(res: Response, requestId: string): void {
  res.set({ "idempotent-replayed": "true", "x-request-id": requestId });
  // The Messages format also sends the id as `request-id`.
  if (res.hasHeader("request-id")) res.set("request-id", requestId);
}
