const groups = new Intl.NumberFormat("en-US");
export const count = (value: number): string => groups.format(value);

const units = ["B", "KB", "MB", "GB"];
export function bytes(size: number): string {
  let [value, unit] = [size, 0];
  while (value >= 1000 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${value.toFixed(value < 10 && unit > 0 ? 1 : 0)} ${units[unit]}`;
}

/** What a media type is, in a word: `Image`. */
export function kindOf(mime: string): string {
  const [kind = ""] = mime.split("/");
  return { image: "Image", video: "Video", audio: "Sound" }[kind] ?? "File";
}

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

const percents = new Intl.NumberFormat("en-US", {
  style: "percent",
  maximumFractionDigits: 0,
  signDisplay: "exceptZero",
});
/** The change since an earlier value, such as `+12%`. Undefined if there was nothing before. */
export const percentChange = (now: number, before: number): string | undefined =>
  before > 0 ? percents.format(now / before - 1) : undefined;

const shares = new Intl.NumberFormat("en-US", { style: "percent", maximumFractionDigits: 1 });
/** A part of a whole: 0.754 is `75.4%`. */
export const share = (part: number): string => shares.format(part);

/** A UTC day, as the service counts them: 2026-11-23. */
export const dayOf = (date: Date): string => date.toISOString().slice(0, 10);

export function daysBefore(day: string, days: number): string {
  return dayOf(new Date(Date.parse(`${day}T00:00:00Z`) - days * 86_400_000));
}

const shortDay = new Intl.DateTimeFormat("en-US", { month: "short", day: "numeric", timeZone: "UTC" });
export const dayLabel = (day: string): string => shortDay.format(new Date(`${day}T00:00:00Z`));

const longDay = new Intl.DateTimeFormat("en-US", { dateStyle: "long", timeZone: "UTC" });
/** A UTC day with its year, for documents. */
export const fullDay = (day: string): string => longDay.format(new Date(`${day}T00:00:00Z`));

const shortHour = new Intl.DateTimeFormat("en-US", {
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23",
  timeZone: "UTC",
});
/** A UTC day, or an hour such as `2026-11-23T05:00Z`. */
export const timeLabel = (time: string): string =>
  time.includes("T") ? shortHour.format(new Date(time)) : dayLabel(time);

/** The text with a capital at its beginning. */
export const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
