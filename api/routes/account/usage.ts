import { z } from "zod";
import { invalidValue } from "#errors";
import type { Keys } from "#keys";
import { dayOf, daysLater, formatUsd, type Money, type UsageGroup, type UsageRow, usageGroups } from "#money";
import type { Clock } from "#platform/clock";
import { parse } from "../../http/input.ts";
import type { AccountHandler } from "./handler.ts";
import { askedKey } from "./own-key.ts";

const maxDays = 366;
const defaultDays = 30;
const maxRows = 10_000;

const day = z.iso.date("must be a day, like 2026-11-23");
const groups = z.string().transform((text, context): UsageGroup[] => {
  const named = text.split(",");
  const unknown = named.find((each) => !usageGroups.some((group) => group === each));
  if (unknown === undefined) return named as UsageGroup[];
  context.addIssue({ code: "custom", message: `'${unknown}' is none of ${usageGroups.join(", ")}` });
  return z.NEVER;
});
const usageQuery = z.strictObject({
  from: day.optional(),
  to: day.optional(),
  group_by: groups.default(["day"]),
  key: z.string().min(1).max(200).optional(),
});

const renderUsage = ({ day, model, key, endpoint, ...sums }: UsageRow) => ({
  object: "usage",
  day,
  model,
  key,
  endpoint,
  calls: sums.calls,
  failed: sums.failed,
  input_tokens: sums.inputTokens,
  output_tokens: sums.outputTokens,
  cached_tokens: sums.cachedTokens,
  units: sums.units,
  cost_usd: formatUsd(sums.costNanoUsd),
});

export function usageHandlers({ keys, money, clock }: { keys: Keys; money: Money; clock: Clock }) {
  return {
    list: async (req, _res, caller) => {
      const { from: given, to = dayOf(clock.now()), group_by: groupBy, key } = parse(usageQuery, req.query);
      const from = given ?? daysLater(to, 1 - defaultDays);
      if (from > to) throw invalidValue("from", "from: must not be after `to`.");
      if (daysLater(from, maxDays - 1) < to) throw invalidValue("from", `from: at most ${maxDays} days until \`to\`.`);
      const query = { from, to, key: await askedKey(keys, caller, key), groupBy, limit: maxRows + 1 };
      const rows = await money.usage(caller.account, query);
      if (rows.length > maxRows)
        throw invalidValue("group_by", `group_by: there are more than ${maxRows} rows; ask for fewer days or groups.`);
      return { object: "list", data: rows.map(renderUsage), has_more: false, next: null };
    },
  } satisfies Record<string, AccountHandler>;
}
