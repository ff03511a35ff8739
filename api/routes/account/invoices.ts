import { z } from "zod";
import { daysLater, formatUsd, type Money, type UsageRow } from "#money";
import { parse } from "../../http/input.ts";
import type { AccountHandler } from "./handler.ts";

const month = z.string().regex(/^[1-9]\d{3}-(0[1-9]|1[0-2])$/, "must be a month, like 2026-11");
const invoiceQuery = z.strictObject({ month });
/** Far above 31 days of all models. */
const maxLines = 100_000;

const renderLine = ({ day, model, calls, inputTokens, outputTokens, cachedTokens, units, costNanoUsd }: UsageRow) => ({
  day: day ?? null,
  model: model ?? null,
  calls,
  input_tokens: inputTokens,
  output_tokens: outputTokens,
  cached_tokens: cachedTokens,
  units,
  cost_usd: formatUsd(costNanoUsd),
});

type Line = ReturnType<typeof renderLine>;

/** Text is quoted, and never begins as a formula does, which spreadsheets would run. */
const cell = (value: string | number | null): string => {
  if (typeof value === "number") return String(value);
  const text = value ?? "";
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
};

/** RFC 4180. Amounts are numbers, exact as they stand. */
function csvOf(lines: readonly Line[], totalUsd: string): string {
  const header = ["day", "model", "calls", "input_tokens", "output_tokens", "cached_tokens", "units", "cost_usd"];
  const rows = lines.map(({ cost_usd, ...line }) => [...Object.values(line).map(cell), cost_usd].join(","));
  return [header.join(","), ...rows, `"total",,,,,,,${totalUsd}`, ""].join("\r\n");
}

export function invoiceHandlers({ money }: { money: Money }) {
  return {
    get: async (req, res, { account }) => {
      const { month } = parse(invoiceQuery, req.query);
      const from = `${month}-01`;
      const to = daysLater(`${daysLater(from, 31).slice(0, 7)}-01`, -1);
      const rows = await money.usage(account, { from, to, groupBy: ["day", "model"], limit: maxLines });
      const totalUsd = formatUsd(rows.reduce((sum, { costNanoUsd }) => sum + costNanoUsd, 0n));
      const lines = rows.map(renderLine);
      res.vary("accept");
      if (req.accepts(["application/json", "text/csv"]) !== "text/csv")
        return { object: "invoice", month, lines, total_usd: totalUsd };
      res.type("text/csv").attachment(`invoice-${month}.csv`);
      return csvOf(lines, totalUsd);
    },
  } satisfies Record<string, AccountHandler>;
}
