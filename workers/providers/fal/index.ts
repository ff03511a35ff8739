/**
 * fal (https://fal.ai/docs/documentation/model-apis/inference/queue): requests of an endpoint (`fal-ai/flux/schnell`) in the
 * provider's queue. It is asked to store as little as possible: neither input nor output in its history, files for an hour.
 * fal/failures.ts reads its errors.
 */
import { createFalClient } from "@fal-ai/client";
import type { Clock } from "#platform/clock";
import { createHosted, type Host } from "../hosted/index.ts";
import { captureRequest } from "../hosted/request.ts";
import type { JsonObject, Provider, Target } from "../provider.ts";
import { connectProvider } from "../wire/provider-client.ts";
import { falFailure } from "./failures.ts";

export function createFal({ baseUrl, apiKey, concurrency }: Target, { clock }: { clock: Clock }): Provider {
  const headers = apiKey === undefined ? {} : { authorization: `Key ${apiKey}` };
  const client = connectProvider({ baseUrl, concurrency, headers, failureOf: falFailure }, clock);

  const host: Host = {
    rules: {
      inlineLimitBytes: 8 * 1024 * 1024,
      privateUrls: /[\\/]{2}[^\s/]*\b(rest(\.alpha)?\.fal\.ai|api\.fal\.ai|fal\.run)\b/i,
      rename,
    },
    submit: (model, input) => captureRequest((fetch) => queueOf(fetch).submit(model, { input, ...storeLittle })),
    idOf: (model, { request_id: id }) =>
      typeof id === "string" && /^[\w-]{1,100}$/.test(id) ? `${model}/requests/${id}` : undefined,
    poll: (job) => captureRequest((fetch) => queueOf(fetch).status(...jobParts(job))),
    running: ["IN_QUEUE", "IN_PROGRESS"],
    ended: ["COMPLETED"],
    async outputOf({ error, error_type }, job, send) {
      const failure = { detail: error, error_type };
      // The platform's own failures have no result.
      if (typeof error_type === "string") throw falFailure(500, {}, failure, clock);
      const output = await send(captureRequest((fetch) => queueOf(fetch).result(...jobParts(job))));
      if (error != null) throw falFailure(500, {}, failure, clock);
      return { output };
    },
    cancel: (job) => captureRequest((fetch) => queueOf(fetch).cancel(...jobParts(job))),
    // "Removed and never processed" (https://fal.ai/docs/documentation/development/handle-cancellations), and time in the
    // queue is never charged (https://docs.fal.ai/documentation/model-apis/pricing). A job in progress may be billed.
    isWaiting: ({ status }) => status === "IN_QUEUE",
    isUnbilled: ({ status }) => status !== "ALREADY_COMPLETED",
  };
  return createHosted(host, client, clock);
}

/** Without `credentials` the library would take a key from the environment. */
const queueOf = (fetch: typeof globalThis.fetch) => createFalClient({ credentials: "-", fetch }).queue;

const storeLittle = { headers: { "x-fal-store-io": "0" }, storageSettings: { expiresIn: "1h" } } as const;

/** A job id here has the endpoint before the provider's request id. */
function jobParts(job: string): [endpoint: string, options: { requestId: string }] {
  const [endpoint = "", requestId = ""] = job.split("/requests/");
  return [endpoint, { requestId }];
}

function rename({ n, size, ...input }: JsonObject): JsonObject {
  const [, width, height] = /^(\d+)x(\d+)$/.exec(typeof size === "string" ? size : "") ?? [];
  return {
    ...(typeof n === "number" && n > 1 && { num_images: n }),
    ...(width !== undefined && { image_size: { width: Number(width), height: Number(height) } }),
    ...input,
  };
}
