import type { Request, Response } from "express";
import { formatUsd } from "#money";

/** Quotes text, and escapes a leading character that spreadsheets would take for a formula. Amounts are in USD. */
function cell(value: string | number | bigint | null | undefined): string {
  if (typeof value === "number") return String(value);
  if (typeof value === "bigint") return formatUsd(value);
  const content = value ?? "";
  const safe = /^[=+\-@\t\r]/.test(content) ? `'${content}` : content;
  return `"${safe.replaceAll('"', '""')}"`;
}

/** Renders CSV (RFC 4180). Amounts, in nano-USD, are exact decimal numbers. */
export const csvOf = (
  header: readonly string[],
  lines: readonly (readonly (string | number | bigint | null | undefined)[])[],
): string => [header.join(","), ...lines.map((line) => line.map(cell).join(",")), ""].join("\r\n");

/** Returns true if the answer is CSV, and names its file. */
export function wantsCsv(req: Request, res: Response, name: string): boolean {
  res.vary("accept");
  if (req.accepts(["application/json", "text/csv"]) !== "text/csv") return false;
  res.type("text/csv").attachment(`${name}.csv`);
  return true;
}
