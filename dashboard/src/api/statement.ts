import { queryOptions } from "@tanstack/react-query";
import { base, request } from "./client.ts";
import type { components } from "./schema.d.ts";

export type Statement = components["schemas"]["Statement"];
export type StatementLine = Statement["lines"][number];

/** Both days are included. The path has two response types, and the document cannot tell which one applies. */
export const statementQuery = (from: string, to: string) =>
  queryOptions({
    queryKey: ["statement", from, to],
    queryFn: ({ signal }) =>
      request<Statement>(`${base}/v1/statement?from=${from}&to=${to}`, {
        headers: { accept: "application/json" },
        signal,
      }),
  });
