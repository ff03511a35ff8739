import { z } from "zod";
import { invalidValue } from "#errors";
import { dayOf, daysLater, serviceUsageGroups } from "#money";
import { fields, tag, usd } from "../../http/fields.ts";
import { listOfNames } from "../../http/input.ts";
import { listOf, text, wholeList } from "../../http/page.ts";
import { ids } from "./accounts.ts";
import { route } from "./route.ts";

const defaultDays = 30;
const maxDays = 366;
const maxRows = 10_000;

const day = z.iso.date().meta({ example: "2026-11-23" });

const usage = fields({
  object: tag("usage"),
  day: day.optional(),
  model: z.string().nullable().optional(),
  account: z.string().nullable().optional(),
  calls: z.int().describe("Calls and uploads that ended"),
  failed: z.int(),
  cancelled: z.int(),
  input_tokens: z.int(),
  output_tokens: z.int(),
  cost_usd: usd.describe("What accounts were charged, minus the refunds of the same days"),
  upstream_cost_usd: usd.describe("What the upstreams charge us, by the `cost` that the catalog has"),
  unpriced_usd: usd.describe(
    "The part of `cost_usd` from uploads, and from calls whose upstream has no `cost` in the catalog",
  ),
  margin_usd: usd.describe("`cost_usd` minus `unpriced_usd` and `upstream_cost_usd`"),
}).meta({ id: "ServiceUsage" });

export const usageRoutes = [
  route({
    method: "get",
    path: "/usage",
    operationId: "listServiceUsage",
    summary: "Usage and margin of all accounts, by day, model and account",
    description:
      "A call counts on the UTC day in which it ended, and a refund on that in which it was made. Sums are at most about a minute old. What storage costs, the fees of payments, and credits are not part of the margin.",
    query: {
      from: day.optional().describe("The first day; default: 30 days that end with `to`"),
      to: day.optional().describe("The last day; default: today. At most 366 days"),
      group_by: listOfNames(serviceUsageGroups)
        .optional()
        .describe("Comma-separated list of day, model or account; or none, for one row; default: day"),
      account: ids.optional().describe("Up to 100 ids of accounts, separated by commas"),
      model: text.optional(),
    },
    answers: { 200: "The sums: by day in order, otherwise the largest cost first; at most 10,000" },
    answer: listOf(usage).meta({ id: "ServiceUsageList" }),
    async handle({ money, clock }, { query }) {
      const { to = dayOf(clock.now()), account, groupBy = ["day"], model } = query;
      const { from = daysLater(to, 1 - defaultDays) } = query;
      if (from > to) throw invalidValue("from", "from: must not be after `to`.");
      if (daysLater(from, maxDays - 1) < to) throw invalidValue("from", `from: at most ${maxDays} days until \`to\`.`);
      const rows = await money.usageOfService({ from, to, accounts: account, model, groupBy, limit: maxRows + 1 });
      if (rows.length > maxRows && groupBy.includes("day"))
        throw invalidValue("group_by", `group_by: there are more than ${maxRows} rows; ask for fewer days or groups.`);
      return wholeList(rows.slice(0, maxRows).map((row) => ({ ...row, day: row.day ?? undefined })));
    },
  }),
];
