import { queryOptions } from "@tanstack/react-query";
import { base, request } from "./client.ts";
import type { components } from "./schema.d.ts";

export type Model = components["schemas"]["Model"];

/** The service's own list; the document also has the lists of other formats under the same path. */
export const modelsQuery = queryOptions({
  queryKey: ["models"],
  queryFn: async ({ signal }) => (await request<{ data: readonly Model[] }>(`${base}/v1/models`, { signal })).data,
  staleTime: 60_000,
});

interface Figures {
  /** From 0 to 1; null for too few attempts. */
  readonly availability: number | null;
  readonly first_token_ms: number | null;
  readonly total_ms: number | null;
}
/** How a model performed in the last 24 hours, over all accounts. */
export interface Performance extends Figures {
  readonly id: string;
  readonly upstreams: readonly (Figures & {
    readonly id: string;
    readonly responds: boolean;
    readonly tokens_per_second: number | null;
  })[];
}

export const performanceQuery = queryOptions({
  queryKey: ["model-performance"],
  queryFn: async ({ signal }) => {
    const { data } = await request<{ data: readonly Performance[] }>(`${base}/model-performance`, { signal });
    return new Map(data.map((each) => [each.id, each]));
  },
  staleTime: 60_000,
});
