import { queryOptions } from "@tanstack/react-query";
import { client, unwrap } from "./client.ts";
import type { components } from "./schema.d.ts";

export type UsageRow = components["schemas"]["UsageSums"];

interface Asked {
  readonly from: string;
  readonly to: string;
  readonly groupBy: readonly ("day" | "model" | "key" | "endpoint")[];
}

/** Sums of calls by day, model, key or endpoint. Days are UTC. */
export const usageQuery = ({ from, to, groupBy }: Asked) =>
  queryOptions({
    queryKey: ["usage", from, to, ...groupBy],
    queryFn: async ({ signal }) => {
      const query = { from, to, group_by: groupBy.join(",") };
      return (await unwrap(client.GET("/v1/usage", { params: { query }, signal }))).data;
    },
    staleTime: 30_000,
  });
