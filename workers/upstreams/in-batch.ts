import type { Catalog } from "#catalog";
import type { Clock } from "#platform/clock";
import { UpstreamFailure } from "../providers/index.ts";
import type { AnswerRequest, ProviderBatches } from "../providers/provider.ts";
import { type Candidate, type MadeAttempt, outcomeOf } from "./attempt.ts";
import { failedCall, logFailure, type UpstreamRequest } from "./failover.ts";
import type { UpstreamState } from "./upstream.ts";

/** An upstream whose provider takes batches. */
export interface BatchUpstream {
  readonly batches: ProviderBatches;
  /**
   * Serves a line of a batch: its one request is answered by `send`. Breakers, slots and speeds tell about live calls, so a
   * batch has no part in them.
   */
  through(
    send: AnswerRequest,
    submittedAt: number,
  ): {
    noteSpeed(): void;
    once<T>(
      request: UpstreamRequest,
      work: (candidate: Candidate, signal: AbortSignal, span: undefined) => Promise<T>,
    ): Promise<T>;
  };
}

export function batchUpstreamOf(
  upstream: UpstreamState | undefined,
  catalog: Pick<Catalog, "find" | "inBatch">,
  clock: Clock,
): BatchUpstream | undefined {
  const batches = upstream?.provider.batches;
  if (!upstream || !batches) return undefined;
  return {
    batches,
    through: (send, submittedAt) => ({
      noteSpeed: () => undefined,
      async once({ targets, record, signal, log, payload }, work) {
        const [target] = targets;
        const served = target?.model.upstreams
          .toSorted((a, b) => (b.batchDiscountBps ?? -1) - (a.batchDiscountBps ?? -1))
          .find((each) => each.upstream === upstream.id);
        if (!target || !served) throw failedCall([]);
        const provider = { ...upstream.provider, ...batches.through(send) };
        const { model, formats = provider.speaks, cost } = served;
        const batchDiscountBps = payload?.batch?.discountBps ?? 0;
        const candidate: Candidate = {
          target,
          upstream: { ...upstream, provider },
          model,
          formats,
          cost: cost && {
            ...cost,
            of: (usage) => catalog.inBatch({ batchDiscountBps }, cost.of(usage)),
          },
        };
        const made: MadeAttempt = { upstream: upstream.id, model: target.model.id, startedAt: submittedAt };
        record.attempts.push(made);
        record.candidate = candidate;
        try {
          const value = await work(candidate, signal, undefined);
          made.outcome = "succeeded";
          return value;
        } catch (error) {
          Object.assign(made, outcomeOf(error));
          if (!(error instanceof UpstreamFailure)) throw error;
          logFailure(log, candidate, error);
          throw failedCall([error]);
        } finally {
          made.endedAt = clock.now();
        }
      },
    }),
  };
}
