/** Search parameters of the address bar, which anyone may have typed: anything but text is ignored. */

type Search<Name extends string> = { readonly [name in Name]?: string | undefined };

/** Keeps the named parameters. */
export const texts =
  <Name extends string>(...names: readonly Name[]) =>
  (search: Record<string, unknown>): Search<Name> =>
    Object.fromEntries(
      names.flatMap((name) => {
        const value = search[name];
        return typeof value === "string" || typeof value === "number" ? [[name, String(value)]] : [];
      }),
    ) as Search<Name>;
