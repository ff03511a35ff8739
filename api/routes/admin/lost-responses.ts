import { z } from "zod";
import type { LostResponse } from "#money";
import { fields, tag, unixSeconds, usd } from "../../http/fields.ts";
import { listOf, pageQuery, readPage } from "../../http/page.ts";
import { idOf, route } from "./route.ts";

const lostResponse = fields({
  id: z.string().describe("The call's `x-request-id`"),
  object: tag("lost_response"),
  account: z.string(),
  state: z.enum(["waiting", "refunded", "kept"]),
  amount_usd: usd.describe("The charge"),
  created_at: unixSeconds.describe("When it was found to be lost"),
}).meta({ id: "LostResponse" });

const shown = ({ nanoUsd: amountNanoUsd, ...lost }: LostResponse) => ({ ...lost, amountNanoUsd });
const ofCall = idOf("The call's `x-request-id`");

/** Charged responses that were lost when an API instance died, above the limit of automatic refunds. */
export const lostResponseRoutes = [
  route({
    method: "get",
    path: "/lost-responses",
    operationId: "listLostResponses",
    summary: "Responses that were lost when an API instance died and are not refunded yet, newest first",
    description:
      "Up to `LOST_RESPONSE_REFUNDS_USD` for each account and death they are refunded without an operator, and are not listed.",
    query: pageQuery,
    answers: { 200: "A page" },
    answer: listOf(lostResponse).meta({ id: "LostResponseList" }),
    handle: ({ money }, { query }) =>
      readPage(query, async (page) => (await money.lostResponses.list(page)).map(shown)),
  }),
  route({
    method: "post",
    path: "/lost-responses/{id}/refund",
    operationId: "refundLostResponse",
    summary: "Refund a lost response",
    params: ofCall,
    answers: { 200: "It is refunded" },
    answer: lostResponse,
    errors: [404],
    handle: async ({ money }, { params: { id } }) => shown(await money.lostResponses.refund(id)),
  }),
  route({
    method: "post",
    path: "/lost-responses/{id}/keep",
    operationId: "keepLostResponse",
    summary: "Keep the charge of a lost response",
    params: ofCall,
    answers: { 200: "It is no longer listed" },
    answer: lostResponse,
    errors: [404],
    handle: async ({ money }, { params: { id } }) => shown(await money.lostResponses.keep(id)),
  }),
];
