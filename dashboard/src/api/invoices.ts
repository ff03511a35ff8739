import { queryOptions } from "@tanstack/react-query";
import { download } from "../lib/download.ts";
import { base, errorOf, request, unreachable } from "./client.ts";
import type { components } from "./schema.d.ts";

export type Invoice = components["schemas"]["Invoice"];
export type InvoiceLine = Invoice["lines"][number];

/** The path has two response types, and the document cannot tell which one applies. */
const pathOf = (month: string) => `${base}/v1/invoices?month=${month}`;

export const invoiceKey = ["invoice"];

export const invoiceQuery = (month: string) =>
  queryOptions({
    queryKey: [...invoiceKey, month],
    queryFn: ({ signal }) => request<Invoice>(pathOf(month), { headers: { accept: "application/json" }, signal }),
  });

/** Downloads the invoice as CSV. The route chooses by `Accept`, which a link cannot send. */
export async function downloadInvoice(month: string): Promise<void> {
  const response = await fetch(pathOf(month), { headers: { accept: "text/csv" } }).catch(unreachable);
  if (!response.ok) throw await errorOf(response);
  download(`invoice-${month}.csv`, await response.blob());
}
