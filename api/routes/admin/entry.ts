import { formatUsd, type LedgerEntry } from "#money";
import { unixSeconds } from "./list.ts";

/** A ledger entry as the admin interface shows it; with `request` if it is that of a call. */
export const renderEntry = ({ request, ...entry }: LedgerEntry) => ({
  id: entry.id,
  object: "entry",
  account: entry.account,
  kind: entry.kind,
  amount_usd: formatUsd(entry.amountNanoUsd),
  created_at: unixSeconds(entry.createdAt),
  ...(entry.idempotencyKey !== undefined && { idempotency_key: entry.idempotencyKey }),
  ...(entry.reason !== undefined && { reason: entry.reason }),
  ...(entry.transaction !== undefined && { transaction: entry.transaction }),
  ...(entry.buyback && {
    buyback: {
      token: entry.buyback.token,
      amount_usd: formatUsd(entry.buyback.nanoUsd),
      batch: entry.buyback.batch,
    },
  }),
  ...(request && {
    request: {
      key: request.key ?? null,
      endpoint: request.endpoint ?? null,
      model: request.model ?? null,
      upstream: request.upstream ?? null,
      attempts: request.attempts,
      status: request.status,
      ...(request.error !== undefined && { error: request.error }),
      usage: request.usage,
      estimated: request.estimated,
      queue_ms: request.queueMs ?? null,
      first_token_ms: request.firstTokenMs ?? null,
      total_ms: request.totalMs,
      shortfall_usd: formatUsd(request.shortfallNanoUsd),
    },
  }),
});
