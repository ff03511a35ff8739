import type { Response } from "express";
import { formatUsd, type LedgerEntry } from "#money";
import { unixSeconds } from "../../http/json-routes.ts";
import { renderAttempts } from "../render-attempts.ts";

/** A ledger entry; `request` is present if it is the entry of a call. Undefined fields are absent from the answer. */
export const renderEntry = ({ request, ...entry }: LedgerEntry, isRefunded = false) => ({
  id: entry.id,
  object: "entry",
  account: entry.account,
  kind: entry.kind,
  amount_usd: formatUsd(entry.amountNanoUsd),
  refunded: isRefunded || undefined,
  created_at: unixSeconds(entry.createdAt),
  idempotency_key: entry.idempotencyKey,
  reason: entry.reason,
  transaction: entry.transaction,
  buyback: entry.buyback && {
    token: entry.buyback.token,
    amount_usd: formatUsd(entry.buyback.nanoUsd),
    batch: entry.buyback.batch,
  },
  request: request && {
    key: request.key ?? null,
    endpoint: request.endpoint ?? null,
    model: request.model ?? null,
    upstream: request.upstream ?? null,
    attempts: renderAttempts(request.attempts),
    status: request.status,
    error: request.error,
    usage: request.usage,
    estimated: request.estimated,
    queue_ms: request.queueMs ?? null,
    first_token_ms: request.firstTokenMs ?? null,
    total_ms: request.totalMs,
    shortfall_usd: formatUsd(request.shortfallNanoUsd),
    upstream_cost_usd: request.upstreamCostNanoUsd === undefined ? undefined : formatUsd(request.upstreamCostNanoUsd),
  },
});

/** The answer to a request that creates an entry once: 200 if it had been created before. */
export function renderMovement(res: Response, { entry, created }: { entry: LedgerEntry; created: boolean }) {
  res.status(created ? 201 : 200);
  return renderEntry(entry);
}
