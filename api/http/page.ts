import { z } from "zod";
import { notFound } from "#errors";
import type { CallPage } from "#money";
import type { Page } from "#platform/mongo/collection";
import { fields, orNull, tag } from "./fields.ts";
import { wholeNumber } from "./input.ts";

/** Pagination of lists. */

export const text = z.string().min(1).max(200);

/** Query parameters of a paginated list. */
export const pageQuery = {
  limit: wholeNumber(z.int().min(1).max(200)).optional().describe("Default: 50"),
  after: text.optional().describe("`next` of the previous page"),
};
export const defaultLimit = 50;

export const listOf = <Item extends z.ZodType>(item: Item) =>
  fields({
    object: tag("list"),
    data: z.array(item),
    has_more: z.boolean(),
    next: orNull(z.string()).describe("The value of `after` for the next page"),
  });

/** A complete list, without further pages. */
export const wholeList = <Item>(data: readonly Item[]) => ({ data, hasMore: false as const, next: null });

/** Reads one page of a list plus one item, to know whether more follow. */
export async function readPage<Item extends { readonly id: string }>(
  { limit = defaultLimit, after }: { readonly limit?: number | undefined; readonly after?: string | undefined },
  read: (page: Page) => Promise<readonly Item[]>,
) {
  const items = await read({ limit: limit + 1, after });
  const data = items.slice(0, limit);
  const hasMore = items.length > limit;
  return { data, hasMore, next: hasMore ? data.at(-1)?.id : null };
}

/** A list in the shape of OpenAI's interface. */
export const idListOf = <Item extends z.ZodType>(item: Item) =>
  fields({
    object: tag("list"),
    data: z.array(item),
    first_id: orNull(z.string()),
    last_id: orNull(z.string()),
    has_more: z.boolean(),
  });

/** Like `readPage`, for `idListOf`. */
export async function idPage<Item extends { readonly id: string }>(...page: Parameters<typeof readPage<Item>>) {
  const { data, hasMore } = await readPage(...page);
  return { data, firstId: data[0]?.id, lastId: data.at(-1)?.id, hasMore };
}

/** A page of calls. It may have fewer than the limit even if more follow. */
export const pageOfCalls = <Item>({ calls, next }: CallPage, shown: (call: CallPage["calls"][number]) => Item) => ({
  data: calls.map(shown),
  hasMore: next !== undefined,
  next,
});

export function found<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw notFound(what);
  return value;
}
