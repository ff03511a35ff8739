import { queryOptions } from "@tanstack/react-query";
import { client, unwrap } from "./client.ts";
import type { components } from "./schema.d.ts";

export type Billing = components["schemas"]["Account"]["billing"];

export const accountQuery = queryOptions({
  queryKey: ["account"],
  queryFn: ({ signal }) => unwrap(client.GET("/v1/account", { signal })),
});

/** Replaces the customer's details on invoices. Null removes them. */
export const setBilling = (billing: { name?: string; address?: string; tax_id?: string } | null) =>
  unwrap(client.PATCH("/v1/account", { body: { billing } }));
