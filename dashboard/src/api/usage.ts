import { queryOptions } from "@tanstack/react-query";
import { base, request } from "./client.ts";

export interface UsageRow {
  readonly day?: string;
  readonly model?: string;
  readonly key?: string;
  readonly endpoint?: string;
  readonly calls: number;
  readonly failed: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cached_tokens: number;
  readonly cost_usd: string;
}

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
      const query = new URLSearchParams({ from, to, group_by: groupBy.join(",") });
      return (await request<{ data: readonly UsageRow[] }>(`${base}/v1/usage?${query}`, { signal })).data;
    },
    staleTime: 30_000,
  });
