import type { IncomingHttpHeaders } from "node:http";
import type { Clock } from "#platform/clock";
import type { JsonObject, UpstreamFailure } from "../provider.ts";
import { failureOf } from "../wire/failures.ts";
import { isObject } from "../wire/json.ts";

/**
 * Models answer `{detail: [{loc, msg, type}]}` (https://fal.ai/docs/documentation/model-apis/errors), the platform
 * `{detail, error_type}` (.../model-apis/request-errors). The type or a header says which errors are transient.
 */
export function falFailure(status: number, headers: IncomingHttpHeaders, body: unknown, clock: Clock): UpstreamFailure {
  const { detail, error_type = headers["x-fal-error-type"] } = isObject(body) ? body : {};
  const errors = Array.isArray(detail) ? detail.filter(isObject) : [];
  const messages = errors.map(({ msg }) => msg).filter((msg) => typeof msg === "string");
  const message = messages.length > 0 ? messages.slice(0, 3).join("; ") : typeof detail === "string" ? detail : "";
  const param = paramOf(errors[0]);
  const retryAfter = headers["x-ratelimit-reset"];
  return failureOf(
    statusOf(errors[0]?.type ?? error_type) ?? (isTransient(status, headers) ? 503 : status),
    retryAfter === undefined || "retry-after" in headers ? headers : { ...headers, "retry-after": String(retryAfter) },
    { error: { message, param } },
    clock,
  );
}

/** The meaning of the documented types, which an endpoint may send with any status. */
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

/** `["body", "image_size", "width"]` is the field `image_size.width` of the input. */
function paramOf({ loc }: JsonObject = {}): string | undefined {
  if (!Array.isArray(loc)) return undefined;
  const path = loc.filter((each) => typeof each === "string" || typeof each === "number");
  const fields = path[0] === "body" ? path.slice(1) : path;
  return fields.length === 0
    ? undefined
    : fields
        .map((each) => (typeof each === "number" ? `[${each}]` : `.${each}`))
        .join("")
        .replace(/^\./, "");
}
