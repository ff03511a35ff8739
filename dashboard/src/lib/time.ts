import { useSyncExternalStore } from "react";

const exact = new Intl.DateTimeFormat("en-US", { dateStyle: "medium", timeStyle: "long" });
export const exactTime = (unixSeconds: number): string => exact.format(new Date(unixSeconds * 1000));

/** The reader's, such as `Europe/Berlin`: times without a zone of their own are in it. */
export const { timeZone } = exact.resolvedOptions();

const relative = new Intl.RelativeTimeFormat("en-US", { numeric: "auto", style: "short" });
export const daySeconds = 86_400;
const steps = [
  ["day", daySeconds],
  ["hour", 3600],
  ["minute", 60],
] as const;

export function relativeTime(unixSeconds: number, nowMs: number): string {
  const seconds = Math.round(unixSeconds - nowMs / 1000);
  for (const [unit, size] of steps)
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
  return Math.abs(seconds) < 10 ? "just now" : relative.format(seconds, "second");
}

/** Formats the time that remains: 7 d 18 h, 23 h 05 min, or 4 min 09 s. */
export function remaining(untilUnixSeconds: number, nowMs: number): string {
  const seconds = Math.max(0, Math.floor(untilUnixSeconds - nowMs / 1000));
  const two = (value: number) => String(value).padStart(2, "0");
  if (seconds >= 2 * daySeconds)
    return `${Math.floor(seconds / daySeconds)} d ${two(Math.floor((seconds % daySeconds) / 3600))} h`;
  if (seconds >= 3600) return `${Math.floor(seconds / 3600)} h ${two(Math.floor((seconds % 3600) / 60))} min`;
  return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
}

/** The first second of a UTC day, given as an input of type date has it. */
export const secondsOf = (day: string | undefined): number | undefined => {
  const ms = Date.parse(`${day ?? ""}T00:00:00Z`);
  return Number.isNaN(ms) ? undefined : ms / 1000;
};

/** The seconds from the first to the end of the last UTC day, as filters of the service take them. Either may be missing. */
export function spanOf(firstDay: string | undefined, lastDay: string | undefined): { from?: number; to?: number } {
  const [from, last] = [secondsOf(firstDay), secondsOf(lastDay)];
  return { ...(from !== undefined && { from }), ...(last !== undefined && { to: last + daySeconds }) };
}

export const hourMs = 3_600_000;
/** A UTC hour, as the service names it. */
export const hourOf = (ms: number): string => `${new Date(ms).toISOString().slice(0, 13)}:00Z`;

const listeners = new Set<() => void>();
const clock: { now: number; timer?: ReturnType<typeof setInterval> } = { now: Date.now() };

function subscribe(listener: () => void) {
  clock.now = Date.now();
  if (listeners.size === 0)
    clock.timer = setInterval(() => {
      clock.now = Date.now();
      for (const notify of listeners) notify();
    }, 1000);
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) clearInterval(clock.timer);
  };
}

/** The current time in milliseconds; all components share one timer. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => clock.now);

/** The current UTC hour, such as `2026-11-23T05:00Z`. */
export const useHour = (): string => useSyncExternalStore(subscribe, () => hourOf(clock.now));
/** The current UTC day. */
export const useToday = (): string => useHour().slice(0, 10);
