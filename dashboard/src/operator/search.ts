/** Filters in the address bar: texts under these names; everything else in the address is dropped. */
export const textSearch =
  <Name extends string>(...names: readonly Name[]) =>
  (given: Record<string, unknown>): Partial<Record<Name, string>> =>
    Object.fromEntries(
      names.flatMap((name) => {
        const value = given[name];
        // The router reads what looks like a number as one.
        const text = typeof value === "string" || typeof value === "number" ? String(value).trim() : "";
        return text === "" ? [] : [[name, text]];
      }),
    ) as Partial<Record<Name, string>>;

/** The first second of a day of UTC, as an input of type date has it. */
export const secondsOf = (day: string | undefined): number | undefined => {
  const ms = Date.parse(`${day ?? ""}T00:00:00Z`);
  return Number.isNaN(ms) ? undefined : ms / 1000;
};
