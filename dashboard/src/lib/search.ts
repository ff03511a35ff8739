/** Search parameters of the address bar, which anyone may have typed. All are plain text: `?days=7`. */

export const parseSearch = (search: string): Record<string, string> => Object.fromEntries(new URLSearchParams(search));

export function stringifySearch(search: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(search).flatMap(([name, value]) => (typeof value === "string" ? [[name, value]] : []));
  return given.length > 0 ? `?${new URLSearchParams(given)}` : "";
}

type Search<Name extends string> = { readonly [name in Name]?: string | undefined };

/** Keeps the named parameters. */
export const texts =
  <Name extends string>(...names: readonly Name[]) =>
  (search: Record<string, unknown>): Search<Name> =>
    Object.fromEntries(
      names.flatMap((name) => {
        const value = search[name];
        return typeof value === "string" ? [[name, value]] : [];
      }),
    ) as Search<Name>;
