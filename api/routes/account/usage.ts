import { z } from "zod";
import { invalidValue } from "#errors";
import {
  type ComparedRow,
  dayOf,
  daysLater,
  firstShownHour,
  hourDays,
  hourOf,
  hoursLater,
  maxLedgerCalls,
  maxLedgerDays,
  previousPeriod,
  type UsageGroup,
  type UsageRow,
  type UsageSums,
  usageGroups,
} from "#money";
import { csvOf, wantsCsv } from "../../http/csv.ts";
import { fields, tag, usd } from "../../http/fields.ts";
import { flag, label, listOfNames } from "../../http/input.ts";
import { text, wholeList } from "../../http/page.ts";
import { askedKey } from "./own-key.ts";
import { route } from "./route.ts";

const maxDays = 366;
const defaultDays = 30;
const defaultHours = 24;
const maxRows = 10_000;

const dayExample = { format: "date", example: "2026-11-23" };
export const day = z.string().meta(dayExample);
const hour = z.string().meta({ example: "2026-11-23T05:00Z" });
const shownHour = (stored: string) => `${stored}:00Z`;
const isHour = (time: string) => time.includes("T");

/** A day, or an hour as it is stored: `2026-11-23T05`. */
const timeInput = z
  .string()
  .transform((text, context): string => {
    const [, stored = text] = /^([\d-]{10}T(?:[01]\d|2[0-3])):00Z$/.exec(text) ?? [];
    if (z.iso.date().safeParse(stored.slice(0, 10)).success && (stored !== text || !isHour(text))) return stored;
    const message = "must be a day, like 2026-11-23, or an hour, like 2026-11-23T05:00Z";
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  })
  .optional()
  .meta({ example: dayExample.example });

const groups = listOfNames(usageGroups)
  .optional()
  .meta({ example: "day,model" })
  .describe(
    `Comma-separated list of day, hour, model, key, endpoint, tag, session or user; or none, for one row; default: day. Session and user: of at most ${maxLedgerDays} days and ${maxLedgerCalls} calls`,
  );

export const counts = {
  calls: z.int().describe("Calls and uploads that ended"),
  input_tokens: z.int(),
  output_tokens: z.int(),
  cached_tokens: z.int().describe("Input tokens that were read from a cache"),
  units: z.number().describe("Units other than tokens: images, seconds, characters"),
  cost_usd: usd.describe("Cost minus the refunds of the same days"),
};
const { calls, ...amounts } = counts;
const firstToken = z.int().nullable().optional();
const sums = {
  calls,
  failed: z.int().describe("Calls that failed. Refused requests are not calls"),
  cancelled: z.int().describe("Calls that the caller cancelled, or disconnected from"),
  ...amounts,
  saved_usd: usd.describe(
    "What prompt caches took off the cost; negative if their writes cost more than their reads saved",
  ),
  first_token_p50_ms: firstToken.describe(
    "With `latency`: the median of the times to the first token, within 5 %. The time of a call that is not streamed is its whole time",
  ),
  first_token_p95_ms: firstToken.describe("With `latency`: their 95th percentile"),
};

const usage = fields({
  object: tag("usage"),
  day: day.optional(),
  hour: hour.optional(),
  model: z.string().nullable().optional(),
  key: z.string().nullable().optional(),
  endpoint: z.string().nullable().optional(),
  tag: z
    .string()
    .nullable()
    .optional()
    .describe("Null for calls without tags; `other` for those after the first 1,000 tags of the month"),
  session: z.string().nullable().optional(),
  user: z.string().nullable().optional(),
  ...sums,
  previous: fields(sums)
    .meta({ id: "PreviousUsageSums" })
    .optional()
    .describe("With `previous`: the sums of the period before"),
}).meta({ id: "UsageSums" });

/** The columns of a row, after those of its groups. */
export const numbersOf = (row: UsageSums) =>
  [row.calls, row.inputTokens, row.outputTokens, row.cachedTokens, row.units, row.costNanoUsd] as const;

function usageCsv(rows: readonly ReturnType<typeof shownRow>[], groupBy: readonly UsageGroup[]): string {
  const columns = usageGroups.filter((group) => groupBy.includes(group));
  const lines = rows.map((row) => {
    const [calls, ...amounts] = numbersOf(row);
    return [...columns.map((column) => row[column]), calls, row.failed, row.cancelled, ...amounts, row.savedNanoUsd];
  });
  const [first, ...others] = Object.keys(counts) as [string, ...string[]];
  return csvOf([...columns, first, "failed", "cancelled", ...others, "saved_usd"], lines);
}

interface Span {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly groupBy: readonly UsageGroup[];
  readonly previous: boolean;
}

/** Completes the period that was asked for, and throws a 400 if it is not kept or too long. */
export function spanOf(now: number, { groupBy, previous, ...asked }: Span): { from: string; to: string } {
  const isHours = asked.from || asked.to ? isHour(asked.from ?? asked.to ?? "") : groupBy.includes("hour");
  const { to = isHours ? hourOf(now) : dayOf(now) } = asked;
  const byHour = isHour(to) || groupBy.includes("hour");
  const lastDays = daysLater(to.slice(0, 10), byHour ? 0 : 1 - defaultDays);
  const { from = isHour(to) ? hoursLater(to, 1 - defaultHours) : lastDays } = asked;
  if (isHour(from) !== isHour(to)) throw invalidValue("to", "to: must be an hour if `from` is one, and a day if not.");
  if (from > to) throw invalidValue("from", "from: must not be after `to`.");
  if (daysLater(from.slice(0, 10), maxDays - 1) < to.slice(0, 10))
    throw invalidValue("from", `from: at most ${maxDays} days until \`to\`.`);
  const kept = firstShownHour(now);
  const isKept = (time: string) => !byHour || time >= kept.slice(0, time.length);
  if (!isKept(from)) throw invalidValue("from", `from: hours are kept for ${hourDays} days.`);
  if (previous && !isKept(previousPeriod({ from, to }).from))
    throw invalidValue("previous", `previous: hours are kept for ${hourDays} days; ask for a shorter period.`);
  return { from, to };
}

const shownRow = ({ day, hour, ...row }: UsageRow | ComparedRow) => ({
  ...row,
  day: day ?? undefined,
  hour: hour == null ? undefined : shownHour(hour),
});

export const usageRoutes = [
  route({
    method: "get",
    path: "/v1/usage",
    operationId: "listUsage",
    summary: "Usage by day or hour, model, key, endpoint, tag, session and user",
    description:
      "Sums of the key itself or, with the scope `manage`, of the whole account. A call counts on the UTC day and hour in which it ended, and a refund in those in which it was made. Sums are at most about a minute old.",
    query: {
      from: timeInput.describe(
        "The first day, or the first hour (`2026-11-23T05:00Z`); default: 30 days before the end of `to`, or 24 hours",
      ),
      to: timeInput.describe(
        `The last day or hour; default: the current one. At most 366 days; hours are kept for ${hourDays} days`,
      ),
      group_by: groups,
      key: text.optional(),
      model: text.optional(),
      endpoint: text.optional().meta({ example: "/v1/chat/completions" }),
      tag: label.optional().describe("Sums the calls with this tag"),
      session_id: label.optional(),
      user: label.optional(),
      previous: flag.optional().describe("Adds to each row the sums of the period of the same length before this one"),
      latency: flag.optional().describe("Adds the times to the first token"),
    },
    answers: { 200: "The sums, ordered by group; at most 10,000" },
    answer: fields({
      object: tag("list"),
      data: z.array(usage),
      has_more: z.literal(false),
      next: z.null(),
      groups_overlap: z
        .literal(true)
        .optional()
        .describe(
          "Sent with `group_by=tag`: a call counts in each of its tags, so the sums of groups may exceed the total",
        ),
    }),
    otherTypes: { "text/csv": { schema: z.string() } },
    // The key of the filter may be another key (403), or unknown (404).
    errors: [403, 404],
    async handle({ keys, money, clock }, { who: caller, query, req, res }) {
      const { groupBy = ["day"], previous = false, from, to, ...filters } = query;
      const span = spanOf(clock.now(), { from, to, groupBy, previous });
      const key = await askedKey(keys, caller, query.key);
      const asked = { ...filters, ...span, key, groupBy, limit: maxRows + 1 };
      const rows = await (previous ? money.usageWithPrevious : money.usage)(caller.account, asked);
      if (rows.length > maxRows)
        throw invalidValue("group_by", `group_by: there are more than ${maxRows} rows; ask for fewer days or groups.`);
      const shown = rows.map(shownRow);
      if (wantsCsv(req, res, `usage-${span.from.slice(0, 13)}-${span.to.slice(0, 13)}`))
        return usageCsv(shown, groupBy);
      return { ...wholeList(shown), ...(groupBy.includes("tag") && { groupsOverlap: true as const }) };
    },
  }),
];
