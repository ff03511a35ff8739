import { z } from "zod";
import { usdText } from "../http/input.ts";
import { requestId } from "./headers.ts";
import { type Group, json, operation, pathId, unixSeconds, usd } from "./operation.ts";

const topup = z
  .object({
    id: z.string().meta({ example: "top_2kT9vQ4mXw7pLr3sZb8n" }),
    object: z.literal("topup"),
    status: z
      .enum(["pending", "completed", "expired"])
      .describe("Completed once something was credited; a payment that comes after the expiry is credited, too"),
    amount_usd: usd.describe("What was asked for"),
    received_usd: usd.describe("What arrived and was credited"),
    transaction: z.string().nullable().describe("The signature of the first payment"),
    solana_pay_url: z.string().describe("For a link or a QR code: a transfer request that wallets read"),
    reference: z.string().describe("Made for this top-up; a payment names it among its accounts"),
    recipient: z.string().describe("The wallet that is paid"),
    created_at: unixSeconds,
    expires_at: unixSeconds,
  })
  .meta({ id: "Topup" });

const topupList = z
  .object({
    object: z.literal("list"),
    data: z.array(topup),
    has_more: z.boolean(),
    next: z.string().nullable().describe("Pass it as `after`"),
  })
  .meta({ id: "TopupList" });

const newTopup = z
  .strictObject({ amount_usd: usdText.describe("From 1.00 to 10000.00, with at most six decimals") })
  .meta({ id: "NewTopup" });

export const accountTopups: Group = {
  name: "Top-ups",
  description:
    "Adding to the balance with USDC on Solana. For keys with the scope `manage`; 404 where the service takes no payments on chain",
  operations: {
    "POST /v1/topups": operation("createTopup", "Ask for a payment by Solana Pay", {
      body: newTopup,
      examples: { dollars: { summary: "25 dollars", value: { amount_usd: "25.00" } } },
      errors: [400, 401, 403, 404, 408, 413, 415, 429, 500, 503],
      responses: {
        "201": { description: "The top-up", headers: z.object(requestId), content: json(topup) },
      },
    }),
    "GET /v1/topups": operation("listTopups", "The account's top-ups, newest first", {
      params: {
        query: z.object({
          limit: z.int().min(1).max(200).optional(),
          after: z.string().min(1).max(200).optional().describe("`next` of the page before"),
        }),
      },
      ok: ["The top-ups", topupList],
      errors: [400, 401, 403, 404, 429, 500, 503],
    }),
    "GET /v1/topups/{id}": operation("getTopup", "One top-up; `status` says when it was credited", {
      params: pathId("top_2kT9vQ4mXw7pLr3sZb8n"),
      ok: ["The top-up", topup],
      errors: [401, 403, 404, 429, 500, 503],
    }),
  },
};
