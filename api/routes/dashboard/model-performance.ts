import { z } from "zod";
import type { Catalog, Model } from "#catalog";
import type { WorkerRegistry } from "#jobs";
import { sharedRead } from "#platform/concurrency/shared-read";
import { percentileMs } from "#platform/time-buckets";
import type { Uses } from "#platform/uses";
import { type AttemptCount, attemptsFor, type Traffic } from "#traffic";
import { servedAt } from "../../admission/model.ts";
import { fields, orNull, tag } from "../../http/fields.ts";

export interface PerformanceDeps extends Uses<"clock"> {
  readonly catalog: Catalog;
  readonly registry: WorkerRegistry;
  readonly traffic: Pick<Traffic, "readModels">;
}

/** A share of fewer attempts says more about their callers than about the upstream. */
const minAttempts = 20;
const validMs = 10_000;

const figures = {
  availability: orNull(z.number()).describe(
    "The share of attempts that did not fail, from 0 to 1; null for fewer than 20",
  ),
  first_token_ms: orNull(z.int()).describe("The median time to the first event of a stream, within 5 %"),
  total_ms: orNull(z.int()).describe("The median duration of attempts that succeeded"),
};

export const modelPerformance = fields({
  id: z.string(),
  object: tag("model_performance"),
  ...figures,
  upstreams: z.array(
    fields({
      id: z.string(),
      responds: z.boolean().describe("false: the circuit breakers of all workers are open"),
      ...figures,
      tokens_per_second: orNull(z.number()).describe("Of its latest answers, from the request to the end"),
    }),
  ),
});

const shown = ({ attempts, failed, firstToken, total }: AttemptCount) => ({
  availability: attempts < minAttempts ? null : 1 - failed / attempts,
  firstTokenMs: percentileMs(firstToken, 50),
  totalMs: percentileMs(total, 50),
});

/** Reads how the listed models have performed in the last 24 hours, in the order of the catalog. */
export function createModelPerformance({ catalog, registry, traffic, clock }: PerformanceDeps) {
  const read = sharedRead(clock, validMs, traffic.readModels);
  return async () => {
    // Without Redis there are no figures.
    const counts = await read().catch(() => new Map());
    const ofUpstream = (model: Model, id: string) => {
      const named = model.upstreams.find(({ upstream }) => upstream === id)?.model ?? model.id;
      return {
        id,
        responds: registry.upstream(id) === "ready",
        ...shown(attemptsFor(model.id, [id], counts)),
        tokensPerSecond: registry.speed(id, named)?.tokensPerSecond,
      };
    };
    return catalog.list().flatMap((model) => {
      const served = servedAt(registry, model);
      // Such a model is not listed.
      if (served.length === 0) return [];
      return {
        id: model.id,
        ...shown(attemptsFor(model.id, served, counts)),
        upstreams: served.map((id) => ofUpstream(model, id)),
      };
    });
  };
}
