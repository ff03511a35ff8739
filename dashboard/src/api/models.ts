import { queryOptions } from "@tanstack/react-query";
import { request } from "./client.ts";
import type { components } from "./schema.d.ts";

export type Model = components["schemas"]["Model"];

/** The service's own list; the document also has the lists of other formats under the same path. */
export const modelsQuery = queryOptions({
  queryKey: ["models"],
  queryFn: async ({ signal }) =>
    (await request<{ data: readonly Model[] }>("/dashboard/api/v1/models", { signal })).data,
  staleTime: 60_000,
});
