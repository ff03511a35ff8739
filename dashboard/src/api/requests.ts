import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { base, request } from "./client.ts";

export interface Attempt {
  readonly upstream: string | null;
  readonly model?: string;
  /** Since the call was accepted. */
  readonly started_ms: number | null;
  readonly duration_ms: number | null;
  readonly outcome: string;
  readonly status?: number;
  readonly code?: string;
}

export interface Call {
  readonly id: string;
  readonly key: string | null;
  readonly endpoint: string | null;
  readonly model: string | null;
  readonly status: string;
  readonly error: string | null;
  readonly cost_usd: string;
  /** Counts by price key. */
  readonly usage: Readonly<Record<string, number>>;
  readonly estimated: boolean;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cached_tokens: number;
  readonly created_at: number;
  readonly queue_ms: number | null;
  readonly first_token_ms: number | null;
  readonly total_ms: number | null;
}

export interface CallWithAttempts extends Call {
  readonly attempts: readonly Attempt[];
}

export interface Filters {
  readonly status?: string | undefined;
  readonly model?: string | undefined;
  readonly key?: string | undefined;
  /** Days of UTC, both included. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

interface Page {
  readonly data: readonly Call[];
  readonly has_more: boolean;
  readonly next: string | null;
}

const secondsOf = (day: string): number => Date.parse(`${day}T00:00:00Z`) / 1000;
const daySeconds = 86_400;

function queryOf({ from, to, ...same }: Filters, limit: number, after: string): URLSearchParams {
  const query = new URLSearchParams({ limit: String(limit) });
  for (const [name, value] of Object.entries(same)) if (value) query.set(name, value);
  if (from) query.set("from", String(secondsOf(from)));
  if (to) query.set("to", String(secondsOf(to) + daySeconds));
  if (after) query.set("after", after);
  return query;
}

const fetchPage = (filters: Filters, limit: number, after: string, signal: AbortSignal) =>
  request<Page>(`${base}/v1/requests?${queryOf(filters, limit, after)}`, { signal });

const pageSize = 50;

export const requestsQuery = (filters: Filters) =>
  infiniteQueryOptions({
    queryKey: ["requests", filters],
    queryFn: ({ pageParam, signal }) => fetchPage(filters, pageSize, pageParam, signal),
    initialPageParam: "",
    getNextPageParam: ({ next }) => next ?? undefined,
  });

export const recentRequestsQuery = (limit: number) =>
  queryOptions({
    queryKey: ["requests", "recent", limit],
    queryFn: async ({ signal }) => (await fetchPage({}, limit, "", signal)).data,
    refetchInterval: 15_000,
  });

export const requestQuery = (id: string) =>
  queryOptions({
    queryKey: ["request", id],
    queryFn: ({ signal }) => request<CallWithAttempts>(`${base}/v1/requests/${encodeURIComponent(id)}`, { signal }),
  });
