import { z } from "zod";
import { sleep } from "#platform/clock";
import { type Delivery, deliveryStatuses, eventTypes } from "#webhooks";
import { fields, inputFields, secondsAsDate, tag } from "../../http/fields.ts";
import { localsOf } from "../../http/headers.ts";
import { timeSpan } from "../../http/input.ts";
import { listOf, pageQuery, readPage, text } from "../../http/page.ts";
import {
  defaultGraceSeconds,
  defaultSecret,
  deletedEndpoint,
  delivery,
  deliveryWithBody,
  endpoint,
  endpointPatch,
  endpointWithSecret,
  newEndpoint,
  rotation,
  shownDelivery,
  shownEndpoint,
} from "../webhook-objects.ts";
import { type AccountDeps, route } from "./route.ts";

/** Webhook endpoints and their deliveries (docs/api/webhooks.md). */

const scope = "manage" as const;
const endpointId = { id: z.string().meta({ example: "we_2kT9vQ4mXw7pLr3sZb8n" }) };
const deliveryId = { id: z.string().meta({ example: "wd_2kT9vQ4mXw7pLr3sZb8n" }) };

const testWaitMs = 20_000;
const pollMs = { first: 50, max: 500 };

/** A worker sends the test; waits until it has, or for 20 seconds. */
async function waitForAttempt(deps: AccountDeps, account: string, id: string): Promise<Delivery> {
  const until = deps.clock.now() + testWaitMs;
  for (let pauseMs = pollMs.first; ; pauseMs = Math.min(pollMs.max, 1.5 * pauseMs)) {
    const found = await deps.webhooks.deliveries.get(account, id);
    const remainingMs = until - deps.clock.now();
    if (found.status === "delivered" || found.status === "failed" || remainingMs <= 0) return found;
    await sleep(deps.clock, Math.min(pauseMs, remainingMs));
  }
}

export const webhookRoutes = [
  route({
    method: "post",
    path: "/v1/webhooks/endpoints",
    operationId: "createWebhookEndpoint",
    summary: "Create an endpoint, which receives events; the secret is shown only here",
    scope,
    body: newEndpoint,
    answers: { 201: "The endpoint, with its secret" },
    answer: endpointWithSecret,
    errors: [409, 501],
    async handle({ webhooks, checkWebhookUrl }, { who: { account }, body }) {
      const url = await checkWebhookUrl(body.url, "url");
      const { endpoint: created, secret } = await webhooks.endpoints.create(account, { ...body, url });
      return { ...shownEndpoint(created), secret };
    },
  }),
  route({
    method: "get",
    path: "/v1/webhooks/endpoints",
    operationId: "listWebhookEndpoints",
    summary: "The account's endpoints, newest first",
    scope,
    query: pageQuery,
    answers: { 200: "The endpoints" },
    answer: listOf(endpoint).meta({ id: "WebhookEndpointList" }),
    handle: ({ webhooks }, { who: { account }, query }) =>
      readPage(query, async (page) => (await webhooks.endpoints.list(account, page)).map(shownEndpoint)),
  }),
  route({
    method: "get",
    path: "/v1/webhooks/endpoints/{id}",
    operationId: "getWebhookEndpoint",
    summary: "One endpoint",
    scope,
    params: endpointId,
    answers: { 200: "The endpoint" },
    answer: endpoint,
    handle: async ({ webhooks }, { who: { account }, params: { id } }) =>
      shownEndpoint(await webhooks.endpoints.get(account, id)),
  }),
  route({
    method: "patch",
    path: "/v1/webhooks/endpoints/{id}",
    operationId: "updateWebhookEndpoint",
    summary: "Change, disable or enable an endpoint",
    scope,
    params: endpointId,
    body: endpointPatch,
    answers: { 200: "The endpoint" },
    answer: endpoint,
    errors: [501],
    async handle({ webhooks, checkWebhookUrl }, { who: { account }, params: { id }, body }) {
      const url = body.url === undefined ? undefined : await checkWebhookUrl(body.url, "url");
      return shownEndpoint(await webhooks.endpoints.update(account, id, { ...body, url }));
    },
  }),
  route({
    method: "delete",
    path: "/v1/webhooks/endpoints/{id}",
    operationId: "deleteWebhookEndpoint",
    summary: "Delete an endpoint; its open deliveries are not sent",
    scope,
    params: endpointId,
    answers: { 200: "The endpoint was deleted" },
    answer: deletedEndpoint,
    async handle({ webhooks }, { who: { account }, params: { id } }) {
      await webhooks.endpoints.delete(account, id);
      return { id, deleted: true as const };
    },
  }),
  route({
    method: "post",
    path: "/v1/webhooks/endpoints/{id}/rotate-secret",
    operationId: "rotateWebhookSecret",
    summary: "Replace the secret; the old one signs as well until the grace period is over",
    scope,
    params: endpointId,
    body: rotation,
    answers: { 200: "The endpoint, with its new secret" },
    answer: endpointWithSecret,
    errors: [501],
    async handle({ webhooks }, { who: { account }, params: { id }, body: { graceSeconds = defaultGraceSeconds } }) {
      const { endpoint: rotated, secret } = await webhooks.endpoints.rotateSecret(account, id, graceSeconds);
      return { ...shownEndpoint(rotated), secret };
    },
  }),
  route({
    method: "post",
    path: "/v1/webhooks/endpoints/{id}/test",
    operationId: "testWebhookEndpoint",
    summary: "Send `webhook.test` once, and wait for the attempt for up to 20 seconds",
    scope,
    params: endpointId,
    body: inputFields({ type: z.literal("webhook.test").optional() }).meta({ id: "WebhookTest" }),
    answers: { 200: "The delivery; it is still open if no worker was free in time" },
    answer: delivery,
    async handle(deps, { who: { account }, params: { id }, res }) {
      const sent = await deps.webhooks.recordTest(account, id, localsOf(res).requestId);
      return shownDelivery(await waitForAttempt(deps, account, sent.delivery));
    },
  }),
  route({
    method: "post",
    path: "/v1/webhooks/endpoints/{id}/recover",
    operationId: "recoverWebhookEndpoint",
    summary: "Send the failed and skipped deliveries of a time span again, at most 10,000",
    scope,
    params: endpointId,
    body: inputFields({
      since: secondsAsDate(z.int().min(0)).describe("unix seconds, at most 7 days ago"),
      until: secondsAsDate(z.int().min(0)).optional().describe("unix seconds, exclusive"),
    }).meta({ id: "WebhookRecovery" }),
    answers: { 202: "The number of deliveries that are sent again" },
    answer: fields({ object: tag("webhook_recovery"), count: z.int() }).meta({ id: "WebhookRecoveryCount" }),
    errors: [409],
    handle: async ({ webhooks }, { who: { account }, params: { id }, body: { since, until } }) => ({
      count: await webhooks.deliveries.recover(account, id, since, until),
    }),
  }),
  route({
    method: "post",
    path: "/v1/webhooks/default/rotate-secret",
    operationId: "rotateDefaultWebhookSecret",
    summary: "Create or replace the secret that signs the webhooks of `x-xm-webhook`",
    scope,
    body: rotation,
    answers: { 200: "The new secret" },
    answer: defaultSecret,
    errors: [501],
    handle: ({ webhooks }, { who: { account }, body: { graceSeconds = defaultGraceSeconds } }) =>
      webhooks.endpoints.rotateDefaultSecret(account, graceSeconds),
  }),
  route({
    method: "get",
    path: "/v1/webhooks/deliveries",
    operationId: "listWebhookDeliveries",
    summary: "The deliveries of all endpoints in the last 30 days, newest first",
    scope,
    query: {
      endpoint: text.optional(),
      type: z.enum(eventTypes).optional(),
      status: z.enum(deliveryStatuses).optional(),
      object_id: text.optional(),
      since: timeSpan.from,
      until: timeSpan.to,
      ...pageQuery,
    },
    answers: { 200: "The deliveries" },
    answer: listOf(delivery).meta({ id: "WebhookDeliveryList" }),
    handle: ({ webhooks }, { who: { account }, query: { limit, after, ...filter } }) =>
      readPage({ limit, after }, async (page) =>
        (await webhooks.deliveries.list(account, page, filter)).map(shownDelivery),
      ),
  }),
  route({
    method: "get",
    path: "/v1/webhooks/deliveries/{id}",
    operationId: "getWebhookDelivery",
    summary: "One delivery, with its attempts and its body",
    scope,
    params: deliveryId,
    answers: { 200: "The delivery" },
    answer: deliveryWithBody,
    handle: async ({ webhooks }, { who: { account }, params: { id } }) =>
      shownDelivery(await webhooks.deliveries.get(account, id)),
  }),
  route({
    method: "post",
    path: "/v1/webhooks/deliveries/{id}/redeliver",
    operationId: "redeliverWebhook",
    summary: "Send a delivery again, with the same `webhook-id`",
    scope,
    params: deliveryId,
    answers: { 202: "The delivery" },
    answer: delivery,
    errors: [409],
    handle: async ({ webhooks }, { who: { account }, params: { id } }) =>
      shownDelivery((await webhooks.deliveries.redeliver(account, id)).delivery),
  }),
];
