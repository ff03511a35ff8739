import { queryOptions } from "@tanstack/react-query";
import { client, unwrap } from "./client.ts";
import type { components } from "./schema.d.ts";

export type Topup = components["schemas"]["Topup"];

export const topupsQuery = queryOptions({
  queryKey: ["topups"],
  queryFn: ({ signal }) => unwrap(client.GET("/v1/topups", { params: { query: { limit: 50 } }, signal })),
});

const pollMs = 2000;

/** Polls until the payment has arrived or its time has expired. */
export const topupQuery = (id: string) =>
  queryOptions({
    queryKey: ["topups", id],
    queryFn: ({ signal }) => unwrap(client.GET("/v1/topups/{id}", { params: { path: { id } }, signal })),
    refetchInterval: ({ state }) => (state.data && state.data.status !== "pending" ? false : pollMs),
  });

export const createTopup = (amount_usd: string) => unwrap(client.POST("/v1/topups", { body: { amount_usd } }));
