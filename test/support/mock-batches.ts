import type { MockRequest } from "./mock-provider.ts";

/** The parts that the stand-ins of batch interfaces share: mock-openai-batches.ts and mock-anthropic-batches.ts. */

export type Fields = Readonly<Record<string, unknown>>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The first field that is not among these. */
export const unknownField = (fields: Fields, known: readonly string[]): string | undefined =>
  Object.keys(fields).find((field) => !known.includes(field));

/** The request of one line, as if it came alone. */
export const lineRequest = (path: string, body: Fields, headers: MockRequest["headers"]): MockRequest => ({
  method: "POST",
  path,
  headers,
  body: { ...body },
  bytes: Buffer.from(JSON.stringify(body)),
  aborted: false,
  eventsSent: 0,
  closed: Promise.resolve(),
});

export const jsonLines = (lines: readonly unknown[]): string =>
  lines.map((line) => `${JSON.stringify(line)}\n`).join("");

/** Another order, the same at each run: two lines or more never keep theirs. */
export const shuffled = <Item>(items: readonly Item[]): Item[] => [
  ...items.filter((_, index) => index % 2 === 1),
  ...items.filter((_, index) => index % 2 === 0).toReversed(),
];

/** Up to `limit` items behind the one with the id `after`, or before the one with the id `before`. */
export function pageOf<Item extends { readonly id: string }>(
  items: readonly Item[],
  { after, before, limit }: { after: string | null; before?: string | null; limit: number },
) {
  const from = after === null ? 0 : items.findIndex(({ id }) => id === after) + 1;
  const end = before == null ? items.length : items.findIndex(({ id }) => id === before);
  const data = before == null ? items.slice(from, from + limit) : items.slice(Math.max(0, end - limit), end);
  const has_more = before == null ? from + limit < items.length : end > limit;
  return { data, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null, has_more };
}
