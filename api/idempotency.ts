import type { Response } from "express";
import { generationInProgress, noCapacity, ServiceError } from "#errors";
import type { Claim, ClaimRequest, IdempotencyStore, Owner } from "#idempotency";
import { type Clock, sleep } from "#platform/clock";
import type { Logger } from "#platform/logger";

export interface IdempotencyDeps {
  readonly idempotency: IdempotencyStore;
  /** Whether anybody may still end this request. */
  readonly isAlive: (owner: Owner) => Promise<boolean>;
  readonly draining: () => boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What the caller names its work by, and what that stands for. */
export interface IdempotencyRequest {
  readonly key: string;
  readonly hash: string;
}

/** This request has the key, or another one has answered. */
export type Claimed = Exclude<Claim, { kind: "running" }>;

const firstAskAgainMs = 100;
const lastAskAgainMs = 2_000;
const releaseAgainMs = 1_000;

/** Takes an `Idempotency-Key` for this request, or waits for the answer of the one that has it. */
export async function claimKey(
  { idempotency, isAlive, draining, clock }: IdempotencyDeps,
  ask: ClaimRequest,
  /** `answerBy`: unix milliseconds. */
  waiting: { readonly answerBy: number; readonly res: Response },
): Promise<Claimed> {
  for (let askAgainMs = firstAskAgainMs; ; askAgainMs = Math.min(lastAskAgainMs, askAgainMs * 1.5)) {
    const begun = await idempotency.claim(ask, isAlive).catch(storesAway);
    if (begun.kind !== "running") return begun;
    const leftMs = waiting.answerBy - clock.now();
    if (leftMs <= 0 || waiting.res.closed) throw generationInProgress();
    if (draining()) throw noCapacity("This instance is shutting down; repeat the request.", 1);
    await sleep(clock, Math.min(askAgainMs, leftMs));
  }
}

/** Whether there is work or an answer under the key. */
export const hasBegun = (
  { idempotency, isAlive }: Pick<IdempotencyDeps, "idempotency" | "isAlive">,
  work: { readonly account: string; readonly key: string },
): Promise<boolean> => idempotency.has(work, isAlive).catch(storesAway);

function storesAway(error: unknown): never {
  if (error instanceof ServiceError) throw error;
  throw noCapacity("The Idempotency-Key cannot be looked up right now.", 1, error);
}

/**
 * Gives the key of a request back that ended before anything was decided. Resolves after the first try, so that no caller
 * waits for a store that is away; goes on until it is done: who else would?
 */
export async function releaseKey(deps: IdempotencyDeps, id: string, requestId: string): Promise<void> {
  const { idempotency, clock, log } = deps;
  try {
    await idempotency.release(id, requestId);
  } catch (error) {
    log.warn({ err: (error as Error).message, requestId }, "an idempotency key is not released yet");
    void sleep(clock, releaseAgainMs).then(() => releaseKey(deps, id, requestId));
  }
}

/** The answer is another request's: its id names the charge. */
export function markReplayed(res: Response, requestId: string): void {
  res.set({ "idempotent-replayed": "true", "x-request-id": requestId });
  // The name that the Messages format gives it.
  if (res.hasHeader("request-id")) res.set("request-id", requestId);
}
