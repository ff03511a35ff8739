import { z } from "zod";
import { requestId } from "./headers.ts";
import { json, operation, usd } from "./operation.ts";

const day = z.string().meta({ format: "date", example: "2026-11-23" });
const counts = {
  calls: z.int().describe("Calls and uploads that ended"),
  input_tokens: z.int(),
  output_tokens: z.int(),
  cached_tokens: z.int().describe("Of the input tokens: read from a cache"),
  units: z.number().describe("Of what is not counted in tokens: images, seconds, characters"),
  cost_usd: usd.describe("Refunds of the same days are subtracted"),
};
const { calls, ...amounts } = counts;

const usage = z
  .object({
    object: z.literal("usage"),
    day: day.optional(),
    model: z.string().nullable().optional(),
    key: z.string().nullable().optional(),
    endpoint: z.string().nullable().optional(),
    calls,
    failed: z.int(),
    ...amounts,
  })
  .meta({ id: "UsageSums" });

const invoice = z
  .object({
    object: z.literal("invoice"),
    month: z.string().meta({ example: "2026-11" }),
    lines: z.array(z.object({ day, model: z.string().nullable(), ...counts })),
    total_usd: usd,
  })
  .meta({ id: "Invoice" });

export const usageOperations = {
  "GET /v1/usage": operation("listUsage", "What was used, by day, model, key and endpoint", {
    description:
      "Of the key itself; with the scope `manage` of the whole account. A call counts on the day, in UTC, on which it ended, a refund on its own; sums are at most about a minute old.",
    params: {
      query: z.object({
        from: day.optional().describe("The first day; default: 30 days before the end of `to`"),
        to: day.optional().describe("The last day; default: today. At most 366 days"),
        group_by: z
          .string()
          .optional()
          .meta({ example: "day,model" })
          .describe("Any of day, model, key, endpoint, separated by commas; default: day"),
        key: z.string().min(1).max(200).optional(),
      }),
    },
    ok: [
      "The sums, in the order of their groups; at most 10,000",
      z.object({
        object: z.literal("list"),
        data: z.array(usage),
        has_more: z.literal(false),
        next: z.null(),
      }),
    ],
    errors: [400, 401, 403, 404, 429, 500, 503],
  }),
  "GET /v1/invoices": operation("getInvoice", "A month by day and model, as JSON or CSV by `Accept` (scope `manage`)", {
    params: { query: z.object({ month: z.string().meta({ example: "2026-11" }) }) },
    responses: {
      "200": {
        description: "The month",
        headers: z.object(requestId),
        content: { ...json(invoice), "text/csv": { schema: z.string() } },
      },
    },
    errors: [400, 401, 403, 429, 500, 503],
  }),
};
