import { z } from "zod";
import { invalidValue } from "#errors";
import { dayOf, daysLater, formatUsd, type UsageGroup, type UsageRow, usageGroups } from "#money";
import { fields, orNull, tag, usd } from "../../http/fields.ts";
import { text, wholeList } from "../../http/page.ts";
import { askedKey } from "./own-key.ts";
import { route } from "./route.ts";

const maxDays = 366;
const defaultDays = 30;
const maxRows = 10_000;

const dayExample = { format: "date", example: "2026-11-23" };
const day = z.string().meta(dayExample);
/** The document omits the pattern of valid dates, which is longer than all other fields together. */
const dayInput = z.iso.date("must be a day, like 2026-11-23").meta({
  example: dayExample.example,
  override: ({ jsonSchema }) => delete jsonSchema.pattern,
});

const groups = z
  .string()
  .transform((list, context): UsageGroup[] => {
    const named = list.split(",");
    const unknown = named.find((each) => !usageGroups.some((group) => group === each));
    if (unknown === undefined) return named as UsageGroup[];
    context.addIssue({ code: "custom", message: `'${unknown}' is not one of ${usageGroups.join(", ")}` });
    return z.NEVER;
  })
  .optional()
  .meta({ example: "day,model" })
  .describe("Comma-separated list of day, model, key or endpoint; default: day");

const counts = {
  calls: z.int().describe("Calls and uploads that ended"),
  input_tokens: z.int(),
  output_tokens: z.int(),
  cached_tokens: z.int().describe("Input tokens that were read from a cache"),
  units: z.number().describe("Units other than tokens: images, seconds, characters"),
  cost_usd: usd.describe("Cost minus the refunds of the same days"),
};
const { calls, ...amounts } = counts;

const usage = fields({
  object: tag("usage"),
  day: day.optional(),
  model: z.string().nullable().optional(),
  key: z.string().nullable().optional(),
  endpoint: z.string().nullable().optional(),
  calls,
  failed: z.int(),
  ...amounts,
}).meta({ id: "UsageSums" });

const invoice = fields({
  object: tag("invoice"),
  month: z.string().meta({ example: "2026-11" }),
  lines: z.array(fields({ day, model: orNull(z.string()), ...counts })),
  total_usd: usd,
}).meta({ id: "Invoice" });

const month = z.string().regex(/^[1-9]\d{3}-(0[1-9]|1[0-2])$/, "must be a month, like 2026-11");
/** Far above 31 days of all models. */
const maxLines = 100_000;

/** Quotes text, and escapes a leading character that spreadsheets would take for a formula. */
function cell(value: string | number | null | undefined): string {
  if (typeof value === "number") return String(value);
  const content = value ?? "";
  const safe = /^[=+\-@\t\r]/.test(content) ? `'${content}` : content;
  return `"${safe.replaceAll('"', '""')}"`;
}

/** Renders CSV (RFC 4180). Amounts are exact decimal numbers. */
function csvOf(rows: readonly UsageRow[], totalNanoUsd: bigint): string {
  const header = ["day", "model", "calls", "input_tokens", "output_tokens", "cached_tokens", "units", "cost_usd"];
  const lines = rows.map((row) => {
    const cells = [row.day, row.model, row.calls, row.inputTokens, row.outputTokens, row.cachedTokens, row.units];
    return [...cells.map(cell), formatUsd(row.costNanoUsd)].join(",");
  });
  return [header.join(","), ...lines, `"total",,,,,,,${formatUsd(totalNanoUsd)}`, ""].join("\r\n");
}

export const usageRoutes = [
  route({
    method: "get",
    path: "/v1/usage",
    operationId: "listUsage",
    summary: "Usage by day, model, key and endpoint",
    description:
      "Sums of the key itself or, with the scope `manage`, of the whole account. A call counts on the UTC day on which it ended, and a refund on the day on which it was made. Sums are at most about a minute old.",
    query: {
      from: dayInput.optional().describe("The first day; default: 30 days before the end of `to`"),
      to: dayInput.optional().describe("The last day; default: today. At most 366 days"),
      group_by: groups,
      key: text.optional(),
    },
    answers: { 200: "The sums, ordered by group; at most 10,000" },
    answer: fields({
      object: tag("list"),
      data: z.array(usage),
      has_more: z.literal(false),
      next: z.null(),
    }),
    // The key of the filter may be another key (403), or unknown (404).
    errors: [403, 404],
    async handle({ keys, money, clock }, { who: caller, query }) {
      const { to = dayOf(clock.now()), groupBy = ["day"], key } = query;
      const { from = daysLater(to, 1 - defaultDays) } = query;
      if (from > to) throw invalidValue("from", "from: must not be after `to`.");
      if (daysLater(from, maxDays - 1) < to) throw invalidValue("from", `from: at most ${maxDays} days until \`to\`.`);
      const asked = { from, to, key: await askedKey(keys, caller, key), groupBy, limit: maxRows + 1 };
      const rows = await money.usage(caller.account, asked);
      if (rows.length > maxRows)
        throw invalidValue("group_by", `group_by: there are more than ${maxRows} rows; ask for fewer days or groups.`);
      return wholeList(rows.map((row) => ({ ...row, day: row.day ?? undefined })));
    },
  }),
  route({
    method: "get",
    path: "/v1/invoices",
    operationId: "getInvoice",
    summary: "Usage of a month by day and model, as JSON or CSV depending on `Accept` (scope `manage`)",
    scope: "manage",
    query: { month: month.meta({ example: "2026-11" }) },
    answers: { 200: "The usage of the month" },
    answer: invoice,
    otherTypes: { "text/csv": { schema: z.string() } },
    async handle({ money }, { who: { account }, query: { month }, req, res }) {
      const from = `${month}-01`;
      const to = daysLater(`${daysLater(from, 31).slice(0, 7)}-01`, -1);
      const rows = await money.usage(account, { from, to, groupBy: ["day", "model"], limit: maxLines });
      const totalNanoUsd = rows.reduce((sum, { costNanoUsd }) => sum + costNanoUsd, 0n);
      res.vary("accept");
      if (req.accepts(["application/json", "text/csv"]) !== "text/csv")
        return { month, lines: rows.map((row) => ({ ...row, day: row.day ?? "" })), totalNanoUsd };
      res.type("text/csv").attachment(`invoice-${month}.csv`);
      return csvOf(rows, totalNanoUsd);
    },
  }),
];
