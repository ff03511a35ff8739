import { queryOptions } from "@tanstack/react-query";
import { client, unwrap } from "./client.ts";

export const balanceKey = ["balance"];

export const balanceQuery = queryOptions({
  queryKey: balanceKey,
  queryFn: ({ signal }) => unwrap(client.GET("/v1/balance", { signal })),
  refetchInterval: 15_000,
  // The user may just have paid for a call before opening a screen that shows the balance.
  staleTime: 0,
});

/** null removes the alert. */
export const setAlert = (alert_below_usd: string | null) =>
  unwrap(client.PATCH("/v1/account", { body: { alert_below_usd } }));
