import { z } from "zod";
import { notFound } from "#errors";
import type { CallPage } from "#money";
import { fields, orNull, tag } from "./fields.ts";
import { wholeNumber } from "./input.ts";

/** Lists in pages. */

export const text = z.string().min(1).max(200);

/** The query of a list. */
export const pageQuery = {
  limit: wholeNumber(z.int().min(1).max(200)).optional().describe("The default is 50"),
  after: text.optional().describe("`next` of the page before"),
};
export const defaultLimit = 50;

export const listOf = <Item extends z.ZodType>(item: Item) =>
  fields({
    object: tag("list"),
    data: z.array(item),
    has_more: z.boolean(),
    next: orNull(z.string()).describe("`after` of the next page"),
  });

/** A list that is whole. */
export const wholeList = <Item>(data: readonly Item[]) => ({ data, hasMore: false as const, next: null });

interface Page {
  readonly limit: number;
  readonly after?: string | undefined;
}

/** Reads one page of a list, and one item more, to know whether there are more. */
export async function readPage<Item extends { readonly id: string }>(
  { limit = defaultLimit, after }: { readonly limit?: number | undefined; readonly after?: string | undefined },
  read: (page: Page) => Promise<readonly Item[]>,
) {
  const items = await read({ limit: limit + 1, after });
  const data = items.slice(0, limit);
  const hasMore = items.length > limit;
  return { data, hasMore, next: hasMore ? data.at(-1)?.id : null };
}

/** A page of calls, which may be short of its limit though there are more. */
export const pageOfCalls = <Item>({ calls, next }: CallPage, shown: (call: CallPage["calls"][number]) => Item) => ({
  data: calls.map(shown),
  hasMore: next !== undefined,
  next,
});

export function found<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw notFound(what);
  return value;
}
