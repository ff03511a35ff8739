import { z } from "zod";
import { maxUnixSeconds } from "../http/input.ts";
import { operation, pathId, unixSeconds, usd } from "./operation.ts";

const text = z.string().min(1).max(200).optional();
const time = z.int().min(0).max(maxUnixSeconds).optional();
const milliseconds = z.number().nullable();
const streamed = z.boolean().nullable().describe("Null if no worker took the call");
const finishReason = z
  .string()
  .nullable()
  .describe("Why the model stopped: `stop`, `length`, `tool_calls`, `content_filter` or `error`; null if it did not");
const request = {
  id: z.string(),
  object: z.literal("request"),
  key: z.string().nullable(),
  endpoint: z.string().nullable(),
  model: z.string().nullable(),
  status: z.enum(["succeeded", "failed", "cancelled"]),
  error: z.string().nullable().describe("The code that was answered"),
  cost_usd: usd,
  refunded: z.boolean().describe("The cost was given back to the balance"),
  usage: z.record(z.string(), z.number()).describe("Counts by price key"),
  estimated: z.boolean().describe("The provider reported no usage"),
  streamed,
  finish_reason: finishReason,
  input_tokens: z.int(),
  output_tokens: z.int(),
  cached_tokens: z.int(),
  created_at: unixSeconds.describe("When the call ended"),
  queue_ms: milliseconds,
  first_token_ms: milliseconds,
  total_ms: milliseconds,
};
const requestObject = z.object(request).meta({ id: "Request" });

const attempt = z.object({
  upstream: z.string().nullable(),
  model: z.string().optional(),
  started_ms: milliseconds,
  duration_ms: milliseconds,
  outcome: z.enum(["succeeded", "failed", "refused", "busy", "timeout", "cancelled"]),
  status: z.int().optional(),
  code: z.string().optional(),
});
const requestDetail = z
  .object({
    ...request,
    status: z
      .enum([...request.status.options, "refused"])
      .describe("`refused`: it was answered with an error before it became a call; found for 24 hours, and in no list"),
    http_status: z.int().nullable().describe("Of the answer to a refused request; null for a call"),
    attempts: z.array(attempt),
  })
  .meta({ id: "RequestDetail" });

const nothing = z.null();
const unknown = [
  "cache_discount",
  "app_id",
  "moderation_latency",
  "native_finish_reason",
  "native_tokens_completion_images",
  "native_tokens_reasoning",
  "num_media_prompt",
  "num_input_audio_prompt",
  "num_media_completion",
  "num_search_results",
  "external_user",
  "router",
  "provider_responses",
];
const generation = z
  .object({
    id: z.string(),
    upstream_id: z.string().nullable().describe("The id of the answer, if the provider made it"),
    model: z.string().nullable(),
    provider_name: z.string().nullable(),
    api_type: z.string().nullable(),
    streamed,
    finish_reason: finishReason,
    created_at: z.string(),
    total_cost: z.number(),
    usage: z.number(),
    upstream_inference_cost: nothing,
    is_byok: z.literal(false),
    cancelled: z.boolean(),
    origin: z.string(),
    latency: milliseconds,
    generation_time: milliseconds,
    tokens_prompt: z.int(),
    tokens_completion: z.int(),
    native_tokens_prompt: z.int(),
    native_tokens_completion: z.int(),
    native_tokens_cached: z.int(),
    ...Object.fromEntries(unknown.map((field) => [field, nothing])),
  })
  .meta({ id: "Generation" });

export const requestOperations = {
  "GET /v1/requests": operation("listRequests", "Calls that ended, newest first, without prompts and answers", {
    description:
      "Of the key itself; with the scope `manage` of the whole account. A call that still runs is not there yet. A page may have fewer calls than `limit`, or none, and `has_more`: each page compares a bounded number of calls with the filters. Go on with `next`.",
    params: {
      query: z.object({
        status: request.status.optional(),
        model: text,
        key: text,
        from: time.describe("Ended at this time or later, in unix seconds"),
        to: time.describe("Ended before this time, in unix seconds"),
        limit: z.int().min(1).max(200).optional(),
        after: text.describe("`next` of the page before"),
      }),
    },
    ok: [
      "The calls",
      z.object({
        object: z.literal("list"),
        data: z.array(requestObject),
        has_more: z.boolean(),
        next: z.string().nullable(),
      }),
    ],
    errors: [400, 401, 403, 404, 429, 500, 503],
  }),
  "GET /v1/requests/{id}": operation("getRequest", "One call, with its attempts at upstreams, or a refused request", {
    params: pathId("req_..."),
    ok: ["The call", requestDetail],
    errors: [401, 404, 429, 500, 503],
  }),
  "GET /v1/generation": operation("getGeneration", "One call in OpenRouter's field names", {
    description: "Amounts are JSON numbers here; the exact ones are in `GET /v1/requests/{id}`.",
    params: {
      query: z.object({
        id: z.string().min(1).max(200).describe("The request id, or the id of the answer").meta({ example: "req_..." }),
      }),
    },
    ok: ["The call", z.object({ data: generation })],
    errors: [400, 401, 404, 429, 500, 503],
  }),
};
