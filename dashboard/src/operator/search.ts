/** What remains of filters in the address bar: those that say something. */
export const filled = <Filters extends Readonly<Record<string, string | undefined>>>(filters: Filters): Filters =>
  Object.fromEntries(Object.entries(filters).filter(([, value]) => value?.trim())) as Filters;
