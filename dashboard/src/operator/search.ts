/** Removes empty filters from the address bar's parameters. */
export const filled = <Filters extends Readonly<Record<string, string | undefined>>>(filters: Filters): Filters =>
  Object.fromEntries(Object.entries(filters).filter(([, value]) => value?.trim())) as Filters;
