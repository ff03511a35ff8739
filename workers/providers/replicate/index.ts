/**
 * Replicate (https://replicate.com/docs/reference/http): predictions of `owner/name`, whose version the provider chooses, and of
 * `owner/name:version`. What was made lies at the provider for an hour. Refused, left alone or down, by replicate/failures.ts.
 */
import Replicate from "replicate";
import type { Clock } from "#platform/clock";
import { written } from "../hosted/client.ts";
import { createHosted, type Host } from "../hosted/index.ts";
import type { JsonObject, Provider, Target } from "../provider.ts";
import { isObject } from "../wire/answers.ts";
import { connectProvider, versioned } from "../wire/provider-client.ts";
import { predictionFailure, replicateFailure } from "./failures.ts";

const ended: readonly unknown[] = ["succeeded", "failed", "canceled", "aborted"];
const underWay: readonly unknown[] = ["starting", "processing", "queued"];

export function createReplicate(target: Target, { clock }: { clock: Clock }): Provider {
  const { apiKey, concurrency } = target;
  const headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  const baseUrl = versioned(target.baseUrl, "v1");
  const provider = connectProvider({ baseUrl, concurrency, headers, failureOf: replicateFailure }, clock);

  const host: Host = {
    rules: {
      // The provider's client puts up to 10 MB inside, but from about 6 MB on predictions are interrupted.
      inlineLimitBytes: 4 * 1024 * 1024,
      kept: /[\\/]{2}[^\s/]*\bapi\.replicate\.com\b/i,
      renamed: ({ n, ...input }) => (typeof n === "number" && n > 1 ? { num_outputs: n, ...input } : input),
    },
    submit: (model, input) => written((fetch) => clientOf(fetch).predictions.create({ ...versionOf(model), input })),
    idOf: (_, { id }) => (typeof id === "string" && /^[a-z0-9]{1,64}$/i.test(id) ? id : undefined),
    look: (id) => written((fetch) => clientOf(fetch).predictions.get(id)),
    isOver: ({ status }) => (ended.includes(status) ? true : underWay.includes(status) ? false : undefined),
    made(prediction) {
      if (prediction.status !== "succeeded") throw predictionFailure(prediction, clock);
      return Promise.resolve({ output: prediction.output, seconds: secondsBilled(prediction) });
    },
    cancel: (id) => written((fetch) => clientOf(fetch).predictions.cancel(id)),
    // One that never started to process is not charged, one that did is, for the time until it was cancelled
    // (https://replicate.com/docs/topics/predictions/lifecycle, https://replicate.com/docs/topics/billing).
    isWaiting: ({ status }) => status === "starting" || status === "queued",
    isUnbilled: ({ started_at }) => started_at == null,
  };
  return createHosted(host, provider, clock);
}

/** Without `auth` the client would take a key from the environment. There are no blobs in an input that it could upload. */
const clientOf = (fetch: typeof globalThis.fetch) => new Replicate({ auth: "-", baseUrl: "https://provider", fetch });

function versionOf(model: string): { version: string } | { model: string } {
  const [, version] = model.split(":");
  return version === undefined ? { model } : { version };
}

/** What models that are billed by length are billed by. */
function secondsBilled({ metrics }: JsonObject): number | undefined {
  const { video_output_duration_seconds: video, audio_output_duration_seconds: audio } = isObject(metrics)
    ? metrics
    : {};
  return [video, audio].find((seconds): seconds is number => typeof seconds === "number" && seconds > 0);
}
