import { queryOptions } from "@tanstack/react-query";
import { client, unwrap } from "./client.ts";

interface Days {
  /** UTC days, both inclusive. */
  readonly from: string;
  readonly to: string;
}

export const cacheUsageQuery = (days: Days) =>
  queryOptions({
    queryKey: ["response-cache", days],
    queryFn: ({ signal }) => unwrap(client.GET("/v1/cache", { params: { query: days }, signal })),
    staleTime: 30_000,
  });

export const clearCache = () => unwrap(client.DELETE("/v1/cache"));
