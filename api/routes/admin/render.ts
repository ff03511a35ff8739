import { formatUsd, type LedgerEntry } from "#money";

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

/** A ledger entry; `request` is present if it is the entry of a call. */
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
