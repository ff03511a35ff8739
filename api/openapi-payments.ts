import { z } from "zod";
import { errorAnswers, errorBody, json } from "./openapi-errors.ts";

/** Specification, part 2, "Payment-required body": x402 version 2, as this service asks. */
const paymentRequired = z
  .object({
    x402Version: z.literal(2),
    error: z.string().describe("Why: no payment came, or what came was none for this request"),
    resource: z.object({ url: z.string(), description: z.string(), mimeType: z.string() }),
    accepts: z
      .array(
        z.object({
          scheme: z.literal("exact"),
          network: z.string().describe("CAIP-2"),
          asset: z.string().describe("The mint of USDC"),
          amount: z.string().describe("Units of it: of 1 USD there are 1,000,000"),
          payTo: z.string(),
          maxTimeoutSeconds: z.int(),
          extra: z.object({ feePayer: z.string(), memo: z.string(), paymentFlow: z.literal("upfront") }),
        }),
      )
      .length(1),
  })
  .meta({ id: "PaymentRequired" });

export const paymentSignature = z
  .string()
  .optional()
  .describe("Without a key: an x402 payment, version 2, of what the 402 asked for; good for this very request alone");

export const paymentResponse = z.string().describe("What became of the payment that came with the request").optional();

/** Of a call that may be paid for by x402. */
export const paymentAnswer = {
  "402": {
    description: `Without a key: what to pay, or why the payment was not taken. ${errorAnswers(402)["402"]?.description}`,
    headers: z.object({
      "PAYMENT-REQUIRED": z.string().describe("The body in base64, for x402 clients").optional(),
      "PAYMENT-RESPONSE": paymentResponse,
    }),
    content: json(z.union([paymentRequired, errorBody])),
  },
};
