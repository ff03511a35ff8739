import { z } from "zod";
import { errorBody, errorHeaders, meaningsOf } from "./errors.ts";
import { idempotencyKey, storedCallHeaders } from "./headers.ts";
import { json, paidErrors } from "./operation.ts";

/** docs/api/inference.md, "Payment required": x402 version 2. */
const paymentRequired = z
  .object({
    x402Version: z.literal(2),
    error: z
      .string()
      .describe("Why: no payment came, or what came was none for this request")
      .meta({ example: "PAYMENT-SIGNATURE header is required" }),
    resource: z.object({
      url: z.string(),
      description: z.string().meta({ example: "One call of local/image" }),
      mimeType: z.string().meta({ example: "application/json" }),
    }),
    accepts: z
      .array(
        z.object({
          scheme: z.literal("exact"),
          network: z.string().describe("CAIP-2").meta({ example: "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp" }),
          asset: z
            .string()
            .describe("The mint of USDC")
            .meta({ example: "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v" }),
          amount: z.string().describe("Units of it: of 1 USD there are 1,000,000").meta({ example: "40000" }),
          payTo: z.string().describe("The wallet that is paid"),
          maxTimeoutSeconds: z
            .int()
            .positive()
            .describe("How long a payment may be underway once it is signed")
            .meta({ example: 60 }),
          extra: z.object({
            feePayer: z.string().describe("Who pays the network's fee"),
            memo: z.string().describe("Names the quote; the payment carries it"),
            paymentFlow: z.literal("upfront"),
          }),
        }),
      )
      .length(1),
  })
  .meta({ id: "PaymentRequired" });

const paymentSignature = z
  .string()
  .optional()
  .describe(
    "Without a key: an x402 payment, version 2, of what the 402 asked for, in base64; good for this very request alone, and again for 24 hours",
  );

const paymentResponse = z
  .string()
  .optional()
  .describe("What became of the payment that came with the request, in base64; also on errors after it was taken");

const paymentHeaders = z.object({
  "PAYMENT-REQUIRED": z.string().optional().describe("The body in base64, for x402 clients; without a key"),
  "PAYMENT-RESPONSE": paymentResponse,
});

export const payableHeaders = storedCallHeaders.extend({ "PAYMENT-RESPONSE": paymentResponse });

/** Calls that x402 can pay for. */
export const payable = {
  security: [{ bearer: [] }, {}],
  params: { header: idempotencyKey.extend({ "PAYMENT-SIGNATURE": paymentSignature }) },
  errors: [...paidErrors, 409],
  isCall: true,
  responses: {
    "402": {
      description: `Without a key: what to pay, or why the payment was not taken. ${meaningsOf(402)}`,
      headers: errorHeaders(402, "common", true).extend(paymentHeaders.shape),
      content: json(z.union([paymentRequired, errorBody])),
    },
  },
};
