const groups = new Intl.NumberFormat("en-US");
export const count = (value: number): string => groups.format(value);

const units = ["B", "KB", "MB", "GB"];
export function bytes(size: number): string {
  let [value, unit] = [size, 0];
  while (value >= 1000 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${value.toFixed(value < 10 && unit > 0 ? 1 : 0)} ${units[unit]}`;
}

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** A UTC day, as the service counts them: 2026-11-23. */
export const dayOf = (date: Date): string => date.toISOString().slice(0, 10);

export function daysBefore(day: string, days: number): string {
  return dayOf(new Date(Date.parse(`${day}T00:00:00Z`) - days * 86_400_000));
}

const shortDay = new Intl.DateTimeFormat("en-US", { month: "short", day: "numeric", timeZone: "UTC" });
export const dayLabel = (day: string): string => shortDay.format(new Date(`${day}T00:00:00Z`));
