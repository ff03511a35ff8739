import { z } from "zod";
import type { ZodOpenApiOperationObject } from "zod-openapi";
import { type EventType, eventTypes } from "#webhooks";
import { json } from "../http/openapi/operation.ts";
import { batchObject, messageBatchObject } from "./batch-object.ts";
import { jobObject } from "./job-object.ts";

/** The requests that webhooks make, for the OpenAPI document (docs/api/webhooks.md). */

const seconds = z.int().describe("unix seconds");
const usd = z.string().meta({ example: "12.5" });
const key = {
  id: z.string(),
  object: z.literal("key"),
  name: z.string().nullable(),
  prefix: z.string().meta({ example: "live_Ab3..." }),
};

const { model, created_at, completed_at, metadata, cost_usd, error, result, result_omitted } = jobObject.shape;
/** The shape that `renderResponse` returns. */
const response = z.object({
  id: z.string().meta({ example: "resp_2kT9vQ4mXw7pLr3sZb8n" }),
  object: z.literal("response"),
  status: z.enum(["completed", "failed", "incomplete", "cancelled"]),
  model,
  created_at,
  completed_at,
  metadata,
  cost_usd,
  error,
  result,
  result_omitted,
});
const balance = z.object({
  id: z.string().describe("The account"),
  object: z.literal("balance"),
  available_usd: usd,
  alert_below_usd: usd,
  alert: z.object({ since: seconds }),
});
const budget = z.object({
  ...key,
  budget: z.object({
    limit_usd: usd,
    period: z.string(),
    spent_usd: usd,
    resets_at: seconds.nullable(),
  }),
  threshold_percent: z.int().describe("80 or 100"),
});
const topup = z.object({
  id: z.string(),
  object: z.literal("topup"),
  status: z.string(),
  amount_usd: usd,
  received_usd: usd,
  transaction: z.string().nullable(),
  created_at: seconds,
  expires_at: seconds,
});
const expiring = z.object({ ...key, expires_at: seconds, days: z.int().describe("7 or 1: days before the expiry") });
const invalidProviderKey = z.object({
  id: z.string().meta({ example: "pkey_2kT9vQ4mXw7pLr3sZb8n" }),
  object: z.literal("provider_key"),
  provider: z.string(),
  name: z.string().nullable(),
  label: z.string().meta({ example: "sk-...AbCd" }),
  status: z.literal("invalid"),
  status_message: z.string().nullable(),
  checked_at: seconds,
});
const upstream = z.object({
  id: z.string().meta({ example: "openai" }),
  object: z.literal("upstream"),
  provider: z.string(),
  since: seconds.describe("When it was found; of `upstream.recovered`, when the trouble was found"),
  last_failure: z
    .object({ at: seconds, message: z.string() })
    .nullable()
    .describe("The latest failure that was not the fault of its request"),
});
const tested = z.object({
  id: z.string(),
  object: z.literal("webhook_endpoint"),
  url: z.string(),
  name: z.string().nullable(),
});

/** `data` of the events of each type. */
const dataOf: Readonly<Record<EventType, readonly [schema: z.ZodType, when: string]>> = {
  "job.completed": [jobObject, "A job has completed"],
  "job.failed": [jobObject, "A job has failed"],
  "job.cancelled": [jobObject, "A job was cancelled"],
  "job.expired": [jobObject, "No worker was free for a job in time"],
  "response.completed": [response, "A response in the background has completed"],
  "response.failed": [response, "A response in the background has failed"],
  "response.incomplete": [response, "A response in the background has ended early"],
  "response.cancelled": [response, "A response in the background was cancelled"],
  "batch.completed": [batchObject, "All lines of a batch have run"],
  "batch.failed": [batchObject, "The input file of a batch was refused"],
  "batch.expired": [batchObject, "A batch has ended after 24 hours, before all of its lines had begun"],
  "batch.cancelled": [batchObject, "A batch was cancelled, and what ran has finished"],
  "batch.paused": [
    z.union([batchObject, messageBatchObject]),
    "No line of a batch begins, for the reason in `x_paused`; it goes on by itself. `data` is of the batch's interface",
  ],
  "message_batch.ended": [messageBatchObject, "A batch of messages has ended"],
  "balance.low": [balance, "The available balance has fallen below the threshold of the account's alert"],
  "budget.threshold": [budget, "A key has spent 80 or 100 percent of its budget in the current period"],
  "topup.completed": [topup, "The first payment of a top-up was credited"],
  "key.expiring": [expiring, "A key expires in 7 days, or in 1 day"],
  "provider_key.invalid": [invalidProviderKey, "A provider does not accept the credential of a provider key any more"],
  "upstream.down": [
    upstream,
    "For operators: attempts at an upstream have failed for five minutes, and none has succeeded",
  ],
  "upstream.key_refused": [upstream, "For operators: a provider does not accept the key of an upstream"],
  "upstream.recovered": [upstream, "For operators: an attempt has succeeded, or the key is accepted again"],
  "webhook.test": [tested, "`POST /v1/webhooks/endpoints/{id}/test` was called"],
};

/** The body of an event. */
export const eventOf = (type: EventType) =>
  z.object({
    id: z.string().meta({ example: "evt_2kT9vQ4mXw7pLr3sZb8n" }),
    object: z.literal("event"),
    created_at: seconds,
    type: z.literal(type),
    data: dataOf[type][0],
  });

const headers = z.object({
  "webhook-id": z.string().describe("Equal in all attempts; ignore an id that you have seen"),
  "webhook-timestamp": z.string().describe("The time of this attempt, in unix seconds"),
  "webhook-signature": z
    .string()
    .describe("`v1,` and the HMAC-SHA256 of id, timestamp and body in base64; several during a rotation, with spaces"),
  "x-xm-event": z.enum(eventTypes),
  "x-xm-attempt": z.string().describe("From 1"),
});

const responses = {
  "2XX": { description: "The event has arrived" },
  "4XX": { description: "The event is sent again later. 410 disables the endpoint" },
};

const receives = (summary: string, operationId: string, body: z.ZodType): ZodOpenApiOperationObject => ({
  operationId,
  summary,
  description: "Signed by the Standard Webhooks specification, and sent at least once, in any order.",
  security: [],
  requestParams: { header: headers },
  requestBody: { required: true, content: json(body) },
  responses,
});

const nameOf = (type: EventType) => `on_${type}`.replaceAll(/[._](\w)/g, (_, letter: string) => letter.toUpperCase());

/** `webhooks` of the document. */
export const eventWebhooks = Object.fromEntries(
  eventTypes.map((type) => [type, { post: receives(dataOf[type][1], nameOf(type), eventOf(type)) }]),
);

/** `callbacks` of a request that takes `x-xm-webhook`: the events of these types. */
function callbacksOf(name: string, summary: string, pattern: RegExp) {
  const [first, ...others] = eventTypes.filter((type) => pattern.test(type)).map(eventOf);
  const body = z.discriminatedUnion("type", [first as ReturnType<typeof eventOf>, ...others]);
  const post = receives(summary, `receive${name}`, body);
  return { [name]: { id: name, "{$request.header.x-xm-webhook}": { post } } };
}

export const jobCallbacks = callbacksOf("JobEnded", "The job has ended", /^job\./);
export const responseCallbacks = callbacksOf(
  "ResponseEnded",
  "The response in the background has ended",
  /^response\./,
);
export const batchCallbacks = callbacksOf("BatchEnded", "The batch has ended, or is paused", /^batch\./);
export const messageBatchCallbacks = callbacksOf(
  "MessageBatchEnded",
  "The batch has ended, or is paused",
  /^message_batch\.|^batch\.paused$/,
);
