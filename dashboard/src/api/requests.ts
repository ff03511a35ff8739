import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { spanOf } from "../lib/time.ts";
import { ApiError, client, defined, unwrap } from "./client.ts";
import type { components } from "./schema.d.ts";

export type Call = components["schemas"]["Request"];
export type CallWithAttempts = components["schemas"]["RequestDetail"];

export interface Filters {
  readonly status?: string | undefined;
  readonly model?: string | undefined;
  readonly endpoint?: string | undefined;
  readonly key?: string | undefined;
  readonly tag?: string | undefined;
  readonly session_id?: string | undefined;
  readonly user?: string | undefined;
  readonly provider_key?: string | undefined;
  /** UTC days, both included. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

const statuses = ["succeeded", "failed", "cancelled"] as const;

/** Ignores an invalid status or day: anyone may have typed the address. */
function queryOf(filters: Filters, limit: number, after: string) {
  const { status, model, endpoint, key, tag, session_id, user, provider_key, from, to } = filters;
  return {
    limit,
    status: statuses.find((each) => each === status),
    model,
    endpoint,
    key,
    tag,
    session_id,
    user,
    provider_key,
    ...spanOf(from, to),
    after: after || undefined,
  };
}

const fetchPage = (filters: Filters, limit: number, after: string, signal: AbortSignal) =>
  unwrap(client.GET("/v1/requests", { params: { query: defined(queryOf(filters, limit, after)) }, signal }));

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
    queryFn: ({ signal }) => unwrap(client.GET("/v1/requests/{id}", { params: { path: { id } }, signal })),
    // Just after a stop, the call's cost is not captured yet, and the call is not listed.
    retry: (failures, error) => failures < 4 && error instanceof ApiError && [0, 404, 503].includes(error.status),
    retryDelay: 500,
    refetchInterval: ({ state: { data } }) => data !== undefined && isNotedLater(data) && 1_000,
  });

const notedSeconds = 5;

/** The message of an error is recorded about a second after the call has ended. */
const isNotedLater = ({ error, error_message, batch, created_at }: CallWithAttempts): boolean =>
  error !== null && error_message === null && batch === null && Date.now() / 1_000 < created_at + notedSeconds;
