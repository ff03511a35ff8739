/**
 * fal (https://fal.ai/docs/documentation/model-apis/inference/queue): requests to an endpoint (`fal-ai/flux/schnell`) run in
 * the provider's queue. The provider is asked to store as little as possible: neither input nor output in its history, and
 * files for an hour.
 */
import type { IncomingHttpHeaders } from "node:http";
import { isObject, type JsonObject } from "#json";
import type { Clock } from "#platform/clock";
import { failureOf, placeOf, withRetryAfter } from "../http/failures.ts";
import { connectProvider } from "../http/provider-client.ts";
import { createPredictionApi, type Host } from "../prediction-apis/index.ts";
import type { Provider, UpstreamEndpoint, UpstreamFailure } from "../provider.ts";

export function createFal({ baseUrl, apiKey, concurrency }: UpstreamEndpoint, { clock }: { clock: Clock }): Provider {
  const headers = apiKey === undefined ? {} : { authorization: `Key ${apiKey}` };
  const client = connectProvider({ baseUrl, concurrency, headers, failureOf: falFailure }, clock);

  const host: Host = {
    rules: {
      inlineLimitBytes: 8 * 1024 * 1024,
      privateHosts: /\b(rest(\.alpha)?\.fal\.ai|api\.fal\.ai|fal\.run)\b/i,
      rename,
    },
    submit: (model, json) => ({ path: `/${model}`, json, headers: storeLittle }),
    idOf: (model, { request_id: id }) =>
      typeof id === "string" && /^[\w-]{1,100}$/.test(id) ? `${model}/requests/${id}` : undefined,
    poll: (job) => ({ path: `${pathOf(job)}/status?logs=0` }),
    running: ["IN_QUEUE", "IN_PROGRESS"],
    ended: ["COMPLETED"],
    async outputOf({ error, error_type }, job, send) {
      const failure = { detail: error, error_type };
      // The platform's own failures have no result.
      if (typeof error_type === "string") throw falFailure(500, {}, failure, clock);
      const output = await send({ path: pathOf(job) });
      if (error != null) throw falFailure(500, {}, failure, clock);
      return { output };
    },
    cancel: (job) => ({ method: "PUT", path: `${pathOf(job)}/cancel` }),
    // "Removed and never processed" (https://fal.ai/docs/documentation/development/handle-cancellations), and time in the
    // queue is never charged (https://docs.fal.ai/documentation/model-apis/pricing). A job in progress may be billed.
    isWaiting: ({ status }) => status === "IN_QUEUE",
    isUnbilled: ({ status }) => status !== "ALREADY_COMPLETED",
  };
  return createPredictionApi(host, client, clock);
}

const storeLittle = {
  "x-fal-store-io": "0",
  "x-fal-object-lifecycle-preference": JSON.stringify({ expiration_duration_seconds: 3_600 }),
};

/** Our job ids prefix the provider's request id with the endpoint. The path contains only the endpoint's owner and name. */
function pathOf(job: string): string {
  const [endpoint = "", requestId = ""] = job.split("/requests/");
  const parts = /^(workflows|comfy)\//.test(endpoint) ? 3 : 2;
  return `/${endpoint.split("/").slice(0, parts).join("/")}/requests/${requestId}`;
}

function rename({ n, size, ...input }: JsonObject): JsonObject {
  const [, width, height] = /^(\d+)x(\d+)$/.exec(typeof size === "string" ? size : "") ?? [];
  return {
    ...(typeof n === "number" && n > 1 && { num_images: n }),
    ...(width !== undefined && { image_size: { width: Number(width), height: Number(height) } }),
    ...input,
  };
}

/**
 * Models answer `{detail: [{loc, msg, type}]}` (https://fal.ai/docs/documentation/model-apis/errors), the platform
 * `{detail, error_type}` (.../model-apis/request-errors). The type or a header says which errors are transient.
 */
function falFailure(status: number, headers: IncomingHttpHeaders, body: unknown, clock: Clock): UpstreamFailure {
  const { detail, error_type = headers["x-fal-error-type"] } = isObject(body) ? body : {};
  const errors = Array.isArray(detail) ? detail.filter(isObject) : [];
  const messages = errors.map(({ msg }) => msg).filter((msg) => typeof msg === "string");
  const message = messages.length > 0 ? messages.slice(0, 3).join("; ") : typeof detail === "string" ? detail : "";
  return failureOf(
    statusOf(errors[0]?.type ?? error_type) ?? (isTransient(status, headers) ? 503 : status),
    withRetryAfter(headers, headers["x-ratelimit-reset"]),
    { error: { message, param: placeOf(errors[0]?.loc) || undefined } },
    clock,
  );
}

/** Statuses for the documented error types, which an endpoint may send with any status. */
const statuses: Readonly<Record<string, number>> = {
  internal_server_error: 500,
  internal_error: 500,
  downstream_service_error: 503,
  downstream_service_unavailable: 503,
  generation_timeout: 504,
  request_timeout: 504,
  startup_timeout: 504,
  bad_request: 400,
  client_disconnected: 503,
  client_cancelled: 503,
  concurrent_requests_limit: 429,
};

function statusOf(type: unknown): number | undefined {
  if (typeof type !== "string") return undefined;
  return type.startsWith("runner_") ? 503 : Object.hasOwn(statuses, type) ? statuses[type] : undefined;
}

const isTransient = (status: number, headers: IncomingHttpHeaders) =>
  (status === 400 || status === 422) &&
  [headers["x-fal-retryable"], headers["x-fal-needs-retry"]].some((value) => /^(true|1|yes)$/i.test(String(value)));
