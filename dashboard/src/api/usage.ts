import { queryOptions } from "@tanstack/react-query";
import { ApiError, client, defined, unwrap } from "./client.ts";
import type { components } from "./schema.d.ts";

export type UsageRow = components["schemas"]["UsageSums"];
export type UsageSums = components["schemas"]["PreviousUsageSums"];

export interface UsageAsked {
  /** UTC days, or hours such as `2026-11-23T05:00Z`; both inclusive. */
  readonly from: string;
  readonly to: string;
  /** Empty for one row. */
  readonly groupBy: readonly ("day" | "hour" | "model" | "key" | "endpoint" | "tag" | "session" | "user")[];
  readonly model?: string | undefined;
  readonly key?: string | undefined;
  readonly endpoint?: string | undefined;
  readonly tag?: string | undefined;
  readonly session_id?: string | undefined;
  readonly user?: string | undefined;
  /** Adds the period before. */
  readonly previous?: boolean;
  /** Adds times to the first token, unless there are too many rows for them. */
  readonly latency?: boolean;
}

const isTrue = (flag: boolean) => (flag ? ("true" as const) : undefined);

async function fetchUsage(asked: UsageAsked, signal: AbortSignal): Promise<readonly UsageRow[]> {
  const { groupBy, previous = false, latency = false, ...rest } = asked;
  const flags = { previous: isTrue(previous), latency: isTrue(latency) };
  const query = {
    ...defined(rest),
    from: rest.from,
    to: rest.to,
    group_by: groupBy.join(",") || "none",
    ...defined(flags),
  };
  try {
    // The client asks for JSON; the route also renders CSV.
    const answer = await unwrap(client.GET("/v1/usage", { params: { query }, signal }));
    return typeof answer === "string" ? [] : answer.data;
  } catch (error) {
    if (latency && error instanceof ApiError && error.param === "latency")
      return fetchUsage({ ...asked, latency: false }, signal);
    throw error;
  }
}

/** Sums of calls by day or hour, model, key, endpoint, tag, session or user. */
export const usageQuery = (asked: UsageAsked) =>
  queryOptions({
    queryKey: ["usage", asked],
    queryFn: ({ signal }) => fetchUsage(asked, signal),
    staleTime: 30_000,
  });
