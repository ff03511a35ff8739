import { dayOf, daysBefore } from "./format.ts";
import { hourMs, hourOf, secondsOf } from "./time.ts";

/** The state of the usage page, read from its address. Anyone may have typed the address. */

const filterParams = ["model", "key", "endpoint", "tag", "session_id", "user"] as const;
export const usageParams = ["range", "from", "to", "interval", "by", "show", ...filterParams] as const;
export type UsageSearch = { readonly [Name in (typeof usageParams)[number]]?: string | undefined };
type Filters = Pick<UsageSearch, (typeof filterParams)[number]>;

export const ranges = [
  { value: "24h", label: "Last 24 hours", days: 1 },
  { value: "7d", label: "Last 7 days", days: 7 },
  { value: "30d", label: "Last 30 days", days: 30 },
  { value: "90d", label: "Last 90 days", days: 90 },
  { value: "custom", label: "Other days", days: 30 },
] as const;
const defaultRange = ranges[2];

const intervals = [
  { value: "hour", label: "Hours" },
  { value: "day", label: "Days" },
] as const;
type Interval = (typeof intervals)[number]["value"];

export const groups = (interval?: Interval) =>
  [
    { value: "model", label: "Model" },
    { value: "key", label: "Key" },
    { value: "endpoint", label: "Endpoint" },
    { value: "tag", label: "Tag" },
    { value: "session", label: "Session" },
    { value: "user", label: "User" },
    { value: "time", label: interval === "hour" ? "Hour" : "Day" },
  ] as const;

export const shown = [
  { value: "cost", label: "Cost" },
  { value: "calls", label: "Calls" },
  { value: "tokens", label: "Tokens" },
  { value: "errors", label: "Errors" },
  { value: "latency", label: "Latency" },
] as const;

/** The service keeps hours for 14 days, and the period before is shown too. */
const hourlyDays = 7;
const keptDays = 14;

/** The longest period of the service. */
const maxDays = 366;

const isDay = (text: string | undefined) => /^\d{4}-\d\d-\d\d$/.test(text ?? "") && secondsOf(text) !== undefined;
const daysOf = (from: string, to: string) => (Date.parse(to) - Date.parse(from)) / (24 * hourMs) + 1;
const pick = <Value extends string>(all: readonly { readonly value: Value }[], value: string | undefined) =>
  all.find((each) => each.value === value)?.value;

/** Days, or hours if `from` is one; both inclusive. */
export function timesBetween(from: string, to: string): readonly string[] {
  const isHours = from.includes("T");
  const times: string[] = [];
  if (daysOf(from, to) > maxDays) return times;
  for (let at = Date.parse(from); at <= Date.parse(to); at += isHours ? hourMs : 24 * hourMs)
    times.push(isHours ? hourOf(at) : dayOf(new Date(at)));
  return times;
}

function spanOf({ range, from, to }: UsageSearch, hour: string) {
  const today = hour.slice(0, 10);
  const { value, days } = ranges.find((each) => each.value === range) ?? defaultRange;
  if (value === "24h") return { range: value, from: hourOf(Date.parse(hour) - 23 * hourMs), to: hour };
  const isCustom = value === "custom";
  const last = isCustom && to && isDay(to) ? to : today;
  return { range: value, from: isCustom && from && isDay(from) ? from : daysBefore(last, days - 1), to: last };
}

/** Days and hours without the period's sums would be taken for free ones, so hours are offered only while they are kept. */
function intervalsOf({ range, from, to }: ReturnType<typeof spanOf>, hour: string): readonly Interval[] {
  if (range === "24h") return ["hour"];
  const days = daysOf(from, to);
  const firstBefore = Date.parse(from) - days * 24 * hourMs;
  const isKept = firstBefore >= Date.parse(daysBefore(hour.slice(0, 10), keptDays));
  return days <= hourlyDays && isKept ? ["hour", "day"] : ["day"];
}

/** Completes what the address says by defaults. */
export function usageView(search: UsageSearch, hour: string) {
  const span = spanOf(search, hour);
  const offered = intervalsOf(span, hour);
  const interval: Interval = offered.find((each) => each === search.interval) ?? offered.at(-1) ?? "day";
  const { from, to } = span;
  const slots =
    interval === "hour" && !from.includes("T")
      ? timesBetween(`${from}T00:00Z`, `${to}T23:00Z`)
      : timesBetween(from, to);
  return {
    ...span,
    interval,
    intervals: intervals.filter(({ value }) => offered.includes(value)),
    times: slots.filter((time) => time <= hour),
    by: pick(groups(), search.by) ?? "model",
    show: pick(shown, search.show) ?? "cost",
    filters: Object.fromEntries(filterParams.map((name) => [name, search[name]])) as Filters,
  };
}

export type UsageView = ReturnType<typeof usageView>;

/** The length of the period before is that of the period. */
export function periodBefore({ from, to }: Pick<UsageView, "from" | "to">) {
  const isHours = from.includes("T");
  const unit = isHours ? hourMs : 24 * hourMs;
  const length = Date.parse(to) - Date.parse(from) + unit;
  const back = (time: string) => (isHours ? hourOf : (ms: number) => dayOf(new Date(ms)))(Date.parse(time) - length);
  return { from: back(from), to: back(to) };
}
