import { queryOptions } from "@tanstack/react-query";
import createClient from "openapi-fetch";
import { unwrap } from "../api/client.ts";
import { eventPage, eventPoll } from "../api/events.ts";
import type { components, paths } from "./schema.d.ts";

/** The admin interface, as an operator's session reaches it. */
export const adminBase = "/dashboard/api/admin/v1";
export const admin = createClient<paths>({ baseUrl: adminBase, credentials: "same-origin" });

type Schemas = components["schemas"];
export type Overview = Schemas["Overview"];
/** The times that the overview shows. */
export type Window = "last_5_minutes" | "last_hour" | "last_day";
export type Attempts = Schemas["UpstreamAttempts"];
export type ServiceUsage = Schemas["ServiceUsage"];
export type TrafficPoint = Schemas["TrafficPoint"];
export type Account = Schemas["AdminAccount"];
export type Key = Schemas["Key"];
export type Entry = Schemas["AdminEntry"];
export type Owed = Schemas["Owed"];
export type Archive = Schemas["Archive"];
export type AuditRecord = Schemas["AuditRecord"];
export type Worker = Schemas["Worker"];
export type Upstream = Schemas["Upstream"];
export type AccountBatch = Schemas["AccountBatch"];
export type JobQueue = Schemas["JobQueue"];
export type CatalogModel = Schemas["CatalogModel"];

const refreshMs = 2_000;
export const slowRefreshMs = 5_000;

export const overviewQuery = queryOptions({
  queryKey: ["admin", "overview"],
  queryFn: ({ signal }) => unwrap(admin.GET("/overview", { signal })),
  refetchInterval: refreshMs,
});

export interface ServiceUsageFilter {
  /** UTC days, both included. */
  readonly from: string;
  readonly to: string;
  /** Ids separated by commas. */
  readonly account?: string;
}

/** Sums that MongoDB adds up for each request, so they are read once and not refreshed. */
export const serviceUsageQuery = ({ groupBy, ...filter }: ServiceUsageFilter & { readonly groupBy: string }) =>
  queryOptions({
    queryKey: ["admin", "usage", filter, groupBy],
    queryFn: ({ signal }) =>
      unwrap(admin.GET("/usage", { params: { query: { ...filter, group_by: groupBy } }, signal })),
    staleTime: 60_000,
  });

export const workersQuery = queryOptions({
  queryKey: ["admin", "workers"],
  queryFn: ({ signal }) => unwrap(admin.GET("/workers", { signal })),
  refetchInterval: refreshMs,
});

export const jobQueuesQuery = queryOptions({
  queryKey: ["admin", "jobs"],
  queryFn: ({ signal }) => unwrap(admin.GET("/jobs", { signal })),
  refetchInterval: slowRefreshMs,
});

export const operatorEventsQuery = queryOptions({
  queryKey: ["admin", "events"],
  queryFn: async ({ signal }) => (await unwrap(admin.GET("/events", { params: eventPage, signal }))).data,
  ...eventPoll,
});

export const failingWebhooksQuery = queryOptions({
  queryKey: ["admin", "webhooks", "failing"],
  queryFn: ({ signal }) => unwrap(admin.GET("/webhooks/failing", { signal })),
  refetchInterval: slowRefreshMs,
});

export const upstreamsQuery = queryOptions({
  queryKey: ["admin", "upstreams"],
  queryFn: ({ signal }) => unwrap(admin.GET("/upstreams", { signal })),
  refetchInterval: slowRefreshMs,
});

export const catalogQuery = queryOptions({
  queryKey: ["admin", "catalog"],
  queryFn: ({ signal }) => unwrap(admin.GET("/catalog", { signal })),
  refetchInterval: slowRefreshMs,
});

export const accountQuery = (id: string) =>
  queryOptions({
    queryKey: ["admin", "account", id],
    queryFn: ({ signal }) => unwrap(admin.GET("/accounts/{id}", { params: { path: { id } }, signal })),
    refetchInterval: slowRefreshMs,
  });
