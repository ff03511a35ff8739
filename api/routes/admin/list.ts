interface Page {
  readonly limit: number;
  readonly after?: string | undefined;
}

/** Reads one more than asked for: that is how it knows whether there are more. */
export async function readList<T extends { readonly id: string }>(
  page: Page,
  read: (page: Page) => Promise<readonly T[]>,
  render: (item: T) => object,
) {
  const items = await read({ ...page, limit: page.limit + 1 });
  const data = items.slice(0, page.limit);
  const hasMore = items.length > page.limit;
  return { object: "list", data: data.map(render), has_more: hasMore, next: hasMore ? data.at(-1)?.id : null };
}

export const unixSeconds = (date: Date) => Math.floor(date.getTime() / 1000);
