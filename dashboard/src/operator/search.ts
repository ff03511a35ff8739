/** The first second of a day of UTC, as an input of type date has it. */
export const secondsOf = (day: string | undefined): number | undefined => {
  const ms = Date.parse(`${day ?? ""}T00:00:00Z`);
  return Number.isNaN(ms) ? undefined : ms / 1000;
};

/** What remains of filters in the address bar: those that say something. */
export const filled = <Filters extends Readonly<Record<string, string | undefined>>>(filters: Filters): Filters =>
  Object.fromEntries(Object.entries(filters).filter(([, value]) => value?.trim())) as Filters;
