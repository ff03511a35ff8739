import { dayMs } from "#platform/clock";

/** Days in UTC, such as `2026-11-23`, which sort chronologically. */
export const dayOf = (time: number | Date): string => new Date(time).toISOString().slice(0, 10);
export const startOf = (day: string): number => Date.parse(`${day}T00:00:00Z`);
export const daysLater = (day: string, days: number): string => dayOf(startOf(day) + days * dayMs);
export const monthOfDay = (day: string): string => day.slice(0, 7);

export const hourMs = 3_600_000;
/** Hours in UTC, such as `2026-11-23T05`. */
export const hourOf = (time: number | Date): string => new Date(time).toISOString().slice(0, 13);
export const startOfHour = (hour: string): number => Date.parse(`${hour}:00:00Z`);
export const hoursLater = (hour: string, hours: number): string => hourOf(startOfHour(hour) + hours * hourMs);
export const firstHourOf = (day: string): string => `${day}T00`;

/** Views by hour reach back this many days, in addition to the current one. */
export const hourDays = 14;
export const firstShownHour = (now: number): string => firstHourOf(daysLater(dayOf(now), -hourDays));
