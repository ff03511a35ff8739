import { queryOptions } from "@tanstack/react-query";
import { base, request } from "./client.ts";

interface Balance {
  readonly balance_usd: string;
  readonly available_usd: string;
  readonly held_usd: string;
  readonly alert_below_usd?: string | null;
}

export const balanceKey = ["balance"];

export const balanceQuery = queryOptions({
  queryKey: balanceKey,
  queryFn: ({ signal }) => request<Balance>(`${base}/v1/balance`, { signal }),
  refetchInterval: 15_000,
});

/** null takes the alert off. */
export const setAlert = (alert_below_usd: string | null) =>
  request<unknown>(`${base}/v1/account`, {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ alert_below_usd }),
  });
