import type { Request, Response } from "express";
import { notFound } from "#errors";
import { formatUsd, type LedgerEntry } from "#money";

/** Returns the body of the answer. */
export type Handler = (req: Request<{ id: string }>, res: Response) => Promise<object>;

export function found<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw notFound(what);
  return value;
}

export const unixSeconds = (date: Date) => Math.floor(date.getTime() / 1000);

interface Page {
  readonly limit: number;
  readonly after?: string | undefined;
}

/** Renders one page of a list. Reads one item more than the page has, to know whether there are more. */
export async function renderPage<T extends { readonly id: string }>(
  page: Page,
  read: (page: Page) => Promise<readonly T[]>,
  render: (item: T) => object,
) {
  const items = await read({ ...page, limit: page.limit + 1 });
  const data = items.slice(0, page.limit);
  const hasMore = items.length > page.limit;
  return { object: "list", data: data.map(render), has_more: hasMore, next: hasMore ? data.at(-1)?.id : null };
}

/** A ledger entry; `request` is present if it is the entry of a call. Undefined fields are absent from the answer. */
export const renderEntry = ({ request, ...entry }: LedgerEntry) => ({
  id: entry.id,
  object: "entry",
  account: entry.account,
  kind: entry.kind,
  amount_usd: formatUsd(entry.amountNanoUsd),
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
    attempts: request.attempts.map(({ upstream, model, startedMs, durationMs, outcome, status, code }) => ({
      upstream: upstream ?? null,
      model,
      started_ms: startedMs ?? null,
      duration_ms: durationMs ?? null,
      outcome,
      status,
      code,
    })),
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
