import { z } from "zod";
import { notFound } from "#errors";
import type { Topup } from "#payments";
import { fields, inputFields, orNull, tag, unixSeconds, usd, usdInput } from "../../http/fields.ts";
import { found, listOf, pageQuery, readPage } from "../../http/page.ts";
import { type AccountDeps, route } from "./route.ts";

const topup = fields({
  id: z.string().meta({ example: "top_2kT9vQ4mXw7pLr3sZb8n" }),
  object: tag("topup"),
  status: z
    .enum(["pending", "completed", "expired"])
    .describe("`completed` once a payment was credited; a payment that arrives after the expiry is credited, too"),
  amount_usd: usd.describe("The requested amount"),
  received_usd: usd.describe("The amount that arrived and was credited"),
  transaction: orNull(z.string()).describe("The signature of the first payment"),
  solana_pay_url: z.string().describe("A transfer request that wallets can read, for a link or a QR code"),
  reference: z.string().describe("Generated for this top-up; a payment includes it among its accounts"),
  recipient: z.string().describe("The wallet that receives the payment"),
  created_at: unixSeconds,
  expires_at: unixSeconds,
}).meta({ id: "Topup" });

const newTopup = inputFields({
  amount_usd: usdInput.describe("From 1.00 to 10000.00, with at most six decimals"),
}).meta({ id: "NewTopup" });

const shown = (topup: Topup) => ({ ...topup, amountNanoUsd: topup.nanoUsd, solanaPayUrl: topup.url });

function enabled({ payments }: Pick<AccountDeps, "payments">) {
  if (!payments.topups) throw notFound("top-up: this service does not accept payments on chain");
  return payments.topups;
}

export const topupRoutes = [
  route({
    method: "post",
    path: "/v1/topups",
    operationId: "createTopup",
    summary: "Create a top-up, to be paid by Solana Pay",
    scope: "manage",
    body: newTopup,
    examples: { dollars: { summary: "25 dollars", value: { amount_usd: "25.00" } } },
    answers: { 201: "The top-up" },
    answer: topup,
    errors: [404],
    async handle(deps, { who: { account }, body: { amountNanoUsd } }) {
      return shown(await enabled(deps).open(account, amountNanoUsd));
    },
  }),
  route({
    method: "get",
    path: "/v1/topups",
    operationId: "listTopups",
    summary: "The account's top-ups, newest first",
    scope: "manage",
    query: pageQuery,
    answers: { 200: "The top-ups" },
    answer: listOf(topup).meta({ id: "TopupList" }),
    errors: [404],
    async handle(deps, { who: { account }, query }) {
      return readPage(query, async (page) => (await enabled(deps).list(account, page)).map(shown));
    },
  }),
  route({
    method: "get",
    path: "/v1/topups/{id}",
    operationId: "getTopup",
    summary: "One top-up; `status` shows whether it was credited",
    scope: "manage",
    params: { id: z.string().meta({ example: "top_2kT9vQ4mXw7pLr3sZb8n" }) },
    answers: { 200: "The top-up" },
    answer: topup,
    async handle(deps, { who: { account }, params: { id } }) {
      return shown(found(await enabled(deps).find(account, id), "top-up"));
    },
  }),
];
