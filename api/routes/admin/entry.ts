import type { Response } from "express";
import { z } from "zod";
import { attemptOutcomes, entryKinds, type LedgerEntry, requestStatuses } from "#money";
import { fields, orNull, tag, unixSeconds, usd } from "../../http/fields.ts";
import { attemptCredential, ownKeyFields, ownKeyOf, shownAttempt } from "../own-key-fields.ts";

const milliseconds = orNull(z.number());
const attempt = fields({
  upstream: orNull(z.string()),
  ...attemptCredential,
  model: z.string().optional().describe("The model of this attempt, if it differs from the request's"),
  started_ms: milliseconds.describe("Time since the call was accepted"),
  duration_ms: milliseconds,
  outcome: z.enum(attemptOutcomes),
  status: z.int().optional(),
  code: z.string().optional(),
}).meta({ id: "AdminAttempt" });

const request = fields({
  key: orNull(z.string()),
  endpoint: orNull(z.string()),
  model: orNull(z.string()),
  upstream: orNull(z.string()),
  attempts: z.array(attempt),
  status: z.enum([...requestStatuses, "refused"]),
  error: z.string().optional(),
  session_id: z.string().optional().describe("The caller's id of the conversation"),
  user: z.string().optional().describe("The caller's id of its user"),
  tags: z.array(z.string()).optional().describe("The caller's tags"),
  http_status: z.int().optional().describe("HTTP status of the error response; for 24 hours, and not in lists"),
  error_message: z.string().optional().describe("The message of the error response; for 24 hours, and not in lists"),
  usage: z.record(z.string(), z.number()),
  estimated: z.boolean(),
  queue_ms: milliseconds,
  first_token_ms: milliseconds,
  total_ms: z.number(),
  shortfall_usd: usd,
  upstream_cost_usd: usd.optional(),
  ...ownKeyFields,
}).meta({ id: "AdminRequest" });

export const entry = fields({
  id: z.string(),
  object: tag("entry"),
  account: z.string(),
  kind: z.enum(entryKinds),
  amount_usd: usd.describe("Signed"),
  refunded: z.literal(true).optional().describe("The cost of this call was refunded; absent in lists of the ledger"),
  created_at: unixSeconds,
  idempotency_key: z.string().optional(),
  reason: z.string().optional(),
  transaction: z.string().optional(),
  buyback: fields({ token: z.string(), amount_usd: usd, batch: z.string().nullable() }).optional(),
  request: request.optional(),
}).meta({ id: "AdminEntry" });

/** Renders an entry. `request` is set for the entry of a call. */
export const shownEntry = (found: LedgerEntry, isRefunded = false) => ({
  ...found,
  ...(isRefunded && { refunded: true as const }),
  buyback: found.buyback && { ...found.buyback, amountNanoUsd: found.buyback.nanoUsd },
  request: found.request && {
    ...found.request,
    ...ownKeyOf(found.request, found.costNanoUsd),
    attempts: found.request.attempts.map(shownAttempt),
  },
});

/** Renders the entry of a request that creates it once, with status 201, or 200 if it had been created before. */
export function shownMovement(res: Response, { entry: made, created }: { entry: LedgerEntry; created: boolean }) {
  res.status(created ? 201 : 200);
  return shownEntry(made);
}
