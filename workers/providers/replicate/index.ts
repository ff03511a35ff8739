/**
 * Replicate (https://replicate.com/docs/reference/http): predictions of `owner/name`, whose version the provider chooses, and of
 * `owner/name:version`. The provider stores outputs for an hour. replicate/failures.ts reads its errors.
 */
import Replicate from "replicate";
import type { Clock } from "#platform/clock";
import { createHosted, type Host } from "../hosted/index.ts";
import { captureRequest } from "../hosted/request.ts";
import type { JsonObject, Provider, Target } from "../provider.ts";
import { isObject } from "../wire/json.ts";
import { connectProvider, versioned } from "../wire/provider-client.ts";
import { predictionFailure, replicateFailure } from "./failures.ts";

export function createReplicate(target: Target, { clock }: { clock: Clock }): Provider {
  const { apiKey, concurrency } = target;
  const headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  const baseUrl = versioned(target.baseUrl, "v1");
  const client = connectProvider({ baseUrl, concurrency, headers, failureOf: replicateFailure }, clock);

  const host: Host = {
    rules: {
      // The provider's library sends up to 10 MB inline, but predictions with more than about 6 MB are interrupted.
      inlineLimitBytes: 4 * 1024 * 1024,
      privateUrls: /[\\/]{2}[^\s/]*\bapi\.replicate\.com\b/i,
      rename: ({ n, ...input }) => (typeof n === "number" && n > 1 ? { num_outputs: n, ...input } : input),
    },
    submit: (model, input) =>
      captureRequest((fetch) => clientOf(fetch).predictions.create({ ...versionOf(model), input })),
    idOf: (_, { id }) => (typeof id === "string" && /^[a-z0-9]{1,64}$/i.test(id) ? id : undefined),
    poll: (id) => captureRequest((fetch) => clientOf(fetch).predictions.get(id)),
    running: ["starting", "processing", "queued"],
    ended: ["succeeded", "failed", "canceled", "aborted"],
    outputOf(prediction) {
      if (prediction.status !== "succeeded") throw predictionFailure(prediction, clock);
      return Promise.resolve({ output: prediction.output, seconds: secondsBilled(prediction) });
    },
    cancel: (id) => captureRequest((fetch) => clientOf(fetch).predictions.cancel(id)),
    // A prediction that never started is not charged; one that did is charged for the time until it was canceled
    // (https://replicate.com/docs/topics/predictions/lifecycle, https://replicate.com/docs/topics/billing).
    isWaiting: ({ status }) => status === "starting" || status === "queued",
    isUnbilled: ({ started_at }) => started_at == null,
  };
  return createHosted(host, client, clock);
}

/** Without `auth` the library would take a key from the environment. The input has no blobs that it would upload. */
const clientOf = (fetch: typeof globalThis.fetch) => new Replicate({ auth: "-", baseUrl: "https://provider", fetch });

function versionOf(model: string): { version: string } | { model: string } {
  const [, version] = model.split(":");
  return version === undefined ? { model } : { version };
}

/** The length by which models of video and audio are billed. */
function secondsBilled({ metrics }: JsonObject): number | undefined {
  const { video_output_duration_seconds: video, audio_output_duration_seconds: audio } = isObject(metrics)
    ? metrics
    : {};
  return [video, audio].find((seconds): seconds is number => typeof seconds === "number" && seconds > 0);
}
