import { z } from "zod";
import {
  type Delivery,
  deliveryStatuses,
  disabledReasons,
  type Endpoint,
  eventTypes,
  subscriptions,
  type WebhookAttempt,
} from "#webhooks";
import { fields, inputFields, orNull, tag, unixSeconds } from "../http/fields.ts";
import { name } from "../http/input.ts";

/** The objects of webhooks (docs/api/webhooks.md). */

const maxHeaders = 10;
const maxHeaderLength = 1_024;
const maxGraceSeconds = 604_800;
/** Set by the service or by the connection. `authorization` is allowed. */
const reservedHeader =
  /^(?:host|connection|transfer-encoding|keep-alive|upgrade|te|trailer|expect|user-agent|content-.*|webhook-.*|proxy-.*|x-xm-.*)$/;

const headerName = z
  .string()
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/, "is not the name of a header")
  .refine((given) => !reservedHeader.test(given.toLowerCase()), "is set by the service");
const headerValue = z
  .string()
  .max(maxHeaderLength)
  .regex(/^[\x20-\x7E]*$/, "must be printable ASCII");
const headers = z
  .record(headerName, headerValue)
  .refine((given) => Object.keys(given).length <= maxHeaders, `has more than ${maxHeaders} headers`)
  .refine(
    (given) => new Set(Object.keys(given).map((each) => each.toLowerCase())).size === Object.keys(given).length,
    "names a header twice",
  )
  .describe("Sent with every attempt; at most 10, of 1 KB each. Shown as `***`");

const events = z
  .array(z.enum(subscriptions))
  .min(1)
  .max(subscriptions.length)
  .describe("Event types, families such as `job.*`, or `*`");
const url = z.string().min(1).max(2_048).describe("An https URL at a public address");
const includeResult = z.boolean().describe("Include JSON results of at most 256 KB in the events of jobs");

export const newEndpoint = inputFields({
  url,
  events,
  name: name.optional(),
  headers: headers.optional(),
  include_result: includeResult.optional(),
  disabled: z.boolean().optional(),
}).meta({ id: "NewWebhookEndpoint" });

export const endpointPatch = inputFields({
  url: url.optional(),
  events: events.optional(),
  name: name.nullable().optional(),
  headers: headers.optional().describe("Replaces all headers"),
  include_result: includeResult.optional(),
  disabled: z.boolean().optional().describe("`false` enables the endpoint and forgets its failures"),
}).meta({ id: "WebhookEndpointPatch" });

export const rotation = inputFields({
  grace_seconds: z.int().min(0).max(maxGraceSeconds).optional().describe("Default: 86400"),
}).meta({ id: "SecretRotation" });
export const defaultGraceSeconds = 86_400;

const endpointFields = {
  id: z.string().meta({ example: "we_2kT9vQ4mXw7pLr3sZb8n" }),
  object: tag("webhook_endpoint"),
  url: z.string(),
  name: orNull(z.string()),
  events: z.array(z.string()),
  headers: z.record(z.string(), z.string()),
  include_result: z.boolean(),
  disabled: z.boolean(),
  disabled_reason: orNull(z.enum(disabledReasons)).describe(
    "`failing`: for 5 days no attempt succeeded; `gone`: it answered 410; `by_user`",
  ),
  disabled_at: orNull(unixSeconds),
  notice: orNull(z.enum(["failing", "disabled"])).describe(
    "`failing`: no attempt has succeeded for a day; `disabled`: the service has disabled it",
  ),
  secret_hint: z.string().meta({ example: "whsec_...ab12" }),
  created_at: unixSeconds,
  last_success_at: orNull(unixSeconds),
  last_failure_at: orNull(unixSeconds),
  failing_since: orNull(unixSeconds),
};
const secret = z
  .string()
  .meta({ example: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=" })
  .describe("Signs the webhooks; shown only here");

export const endpoint = fields(endpointFields).meta({ id: "WebhookEndpoint" });
export const endpointWithSecret = fields({ ...endpointFields, secret }).meta({ id: "WebhookEndpointWithSecret" });
export const deletedEndpoint = fields({
  id: z.string(),
  object: tag("webhook_endpoint"),
  deleted: z.literal(true),
}).meta({ id: "DeletedWebhookEndpoint" });
export const defaultSecret = fields({
  object: tag("webhook_secret"),
  secret_hint: z.string(),
  secret,
}).meta({ id: "DefaultWebhookSecret" });

export const shownEndpoint = ({ headerNames, ...shown }: Endpoint) => ({
  ...shown,
  headers: Object.fromEntries(headerNames.map((header) => [header, "***"])),
  disabled: shown.disabledReason !== null,
});

const attempt = fields({
  at: unixSeconds,
  status_code: orNull(z.int()),
  error: orNull(z.string()),
  duration_ms: z.int(),
  response_snippet: orNull(z.string()).describe("The first kilobyte of the response"),
});
const deliveryFields = {
  id: z.string().meta({ example: "wd_2kT9vQ4mXw7pLr3sZb8n" }),
  object: tag("webhook_delivery"),
  webhook_id: z.string().describe("The `webhook-id` of every attempt").meta({ example: "whm_2kT9vQ4mXw7pLr3sZb8n" }),
  endpoint_id: orNull(z.string()).describe("null for a URL of `x-xm-webhook`"),
  url: z.string(),
  type: z.enum(eventTypes),
  object_id: z.string().describe("The job, or other object, that the event is about"),
  status: z.enum(deliveryStatuses),
  attempts: z.array(attempt).describe("The last 20"),
  next_attempt_at: orNull(unixSeconds),
  created_at: unixSeconds,
};
export const delivery = fields(deliveryFields).meta({ id: "WebhookDelivery" });
export const deliveryWithBody = fields({
  ...deliveryFields,
  body: orNull(z.string()).describe("The body as it is sent; null after 7 days"),
}).meta({ id: "WebhookDeliveryWithBody" });

export const event = z
  .object({
    id: z.string().meta({ example: "evt_2kT9vQ4mXw7pLr3sZb8n" }),
    object: z.literal("event"),
    created_at: z.int().describe("unix seconds"),
    type: z.string().meta({ example: "balance.low" }),
    data: z.looseObject({ id: z.string() }).describe("What the event's type says (docs/api/webhooks.md)"),
  })
  .meta({ id: "Event" });

export const shownDelivery = <Shown extends Delivery>(shown: Shown) => ({
  ...shown,
  attempts: shown.attempts.map(({ durationMs, ...each }: WebhookAttempt) => ({
    ...each,
    durationMs: Math.round(durationMs),
  })),
});
