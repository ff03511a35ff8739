import { z } from "zod";
import { disabledReasons, operatorAccount } from "#webhooks";
import { fields, orNull, tag, unixSeconds } from "../../http/fields.ts";
import { listOf, pageQuery, readPage, wholeList } from "../../http/page.ts";
import { event } from "../webhook-objects.ts";
import { route } from "./route.ts";

const maxShown = 100;

const failingWebhook = fields({
  id: z.string(),
  object: tag("failing_webhook"),
  account: z.string(),
  origin: z.string().describe("Of its URL, whose path may be a secret of the account"),
  failing_since: unixSeconds.describe("The first failure since its last success"),
  failures: z.int().describe("Failed attempts since then"),
  last_failure_at: orNull(unixSeconds),
  last_success_at: orNull(unixSeconds),
  disabled_reason: orNull(z.enum(disabledReasons)),
}).meta({ id: "FailingWebhook" });

export const webhookRoutes = [
  route({
    method: "get",
    path: "/events",
    operationId: "listOperatorEvents",
    summary: "Events of upstreams in the last 30 days, newest first",
    description: "The endpoints of the account `OPERATOR_ACCOUNT` receive them as webhooks, too.",
    query: pageQuery,
    answers: { 200: "A page" },
    answer: listOf(event).meta({ id: "OperatorEventList" }),
    handle: ({ webhooks }, { query }) => readPage(query, (page) => webhooks.notices.list(operatorAccount, page)),
  }),
  route({
    method: "get",
    path: "/webhooks/failing",
    operationId: "listFailingWebhooks",
    summary: "Webhook endpoints whose last attempt failed, the longest failing first",
    description: `At most ${maxShown}. An endpoint that fails for five days is disabled.`,
    query: {},
    answers: { 200: "The endpoints" },
    answer: listOf(failingWebhook).meta({ id: "FailingWebhookList" }),
    handle: async ({ webhooks }) => wholeList(await webhooks.endpoints.failing(maxShown)),
  }),
];
