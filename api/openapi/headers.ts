import { z } from "zod";

export const idempotencyKey = z.object({
  "Idempotency-Key": z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe("The same key and body joins the running work or gets its answer, for 24 hours; a stream ignores it"),
});

const replayed = z
  .literal("true")
  .optional()
  .describe("The stored answer of an earlier request with the same Idempotency-Key, whose id `x-request-id` names");

export const callHeaders = z.object({
  "x-request-id": z.string(),
  "x-xm-cost-usd": z.string().optional().describe("What the request cost; absent on streams"),
});

export const ignoredParams = z.string().optional().describe("Hints that the model or its upstream does not take");

export const nativeHeaders = callHeaders.extend({ "x-ignored-params": ignoredParams });

export const countHeaders = z.object({
  "x-request-id": z.string(),
  "x-xm-token-count": z.enum(["provider", "estimate"]).describe("Who counted"),
});

export const storedCallHeaders = callHeaders.extend({ "idempotent-replayed": replayed });
export const storedNativeHeaders = nativeHeaders.extend({ "idempotent-replayed": replayed });
