/**
 * fal (https://fal.ai/docs/documentation/model-apis/inference/queue): requests of an endpoint (`fal-ai/flux/schnell`) in the
 * provider's queue. Nothing is kept there that need not be: neither input nor output in its history, files for an hour.
 * Refused, left alone or down, by fal/failures.ts.
 */
import { createFalClient } from "@fal-ai/client";
import type { Clock } from "#platform/clock";
import { written } from "../hosted/client.ts";
import { createHosted, type Host } from "../hosted/index.ts";
import type { JsonObject, Provider, Target } from "../provider.ts";
import { connectProvider } from "../wire/provider-client.ts";
import { falFailure } from "./failures.ts";

const underWay: readonly unknown[] = ["IN_QUEUE", "IN_PROGRESS"];

export function createFal({ baseUrl, apiKey, concurrency }: Target, { clock }: { clock: Clock }): Provider {
  const headers = apiKey === undefined ? {} : { authorization: `Key ${apiKey}` };
  const provider = connectProvider({ baseUrl, concurrency, headers, failureOf: falFailure }, clock);

  const host: Host = {
    rules: {
      inlineLimitBytes: 8 * 1024 * 1024,
      kept: /[\\/]{2}[^\s/]*\b(rest(\.alpha)?\.fal\.ai|api\.fal\.ai|fal\.run)\b/i,
      renamed,
    },
    submit: (model, input) => written((fetch) => queueOf(fetch).submit(model, { input, ...keepLittle })),
    idOf: (model, { request_id: id }) =>
      typeof id === "string" && /^[\w-]{1,100}$/.test(id) ? `${model}/requests/${id}` : undefined,
    look: (job) => written((fetch) => queueOf(fetch).status(...partsOf(job))),
    isOver: ({ status }) => (status === "COMPLETED" ? true : underWay.includes(status) ? false : undefined),
    async made({ error, error_type }, job, ask) {
      const failure = { detail: error, error_type };
      // Of the platform's own failures there is no result.
      if (typeof error_type === "string") throw falFailure(500, {}, failure, clock);
      const output = await ask(written((fetch) => queueOf(fetch).result(...partsOf(job))));
      if (error != null) throw falFailure(500, {}, failure, clock);
      return { output };
    },
    cancel: (job) => written((fetch) => queueOf(fetch).cancel(...partsOf(job))),
    // "Removed and never processed" (https://fal.ai/docs/documentation/development/handle-cancellations), and time in the
    // queue is never charged (https://docs.fal.ai/documentation/model-apis/pricing). What is in progress may be billed.
    isWaiting: ({ status }) => status === "IN_QUEUE",
    isUnbilled: ({ status }) => status !== "ALREADY_COMPLETED",
  };
  return createHosted(host, provider, clock);
}

/** Without `credentials` the client would take a key from the environment. */
const queueOf = (fetch: typeof globalThis.fetch) => createFalClient({ credentials: "-", fetch }).queue;

const keepLittle = { headers: { "x-fal-store-io": "0" }, storageSettings: { expiresIn: "1h" } } as const;

/** A job is its endpoint and its id. */
function partsOf(job: string): [endpoint: string, options: { requestId: string }] {
  const [endpoint = "", requestId = ""] = job.split("/requests/");
  return [endpoint, { requestId }];
}

function renamed({ n, size, ...input }: JsonObject): JsonObject {
  const [, width, height] = /^(\d+)x(\d+)$/.exec(typeof size === "string" ? size : "") ?? [];
  return {
    ...(typeof n === "number" && n > 1 && { num_images: n }),
    ...(width !== undefined && { image_size: { width: Number(width), height: Number(height) } }),
    ...input,
  };
}
