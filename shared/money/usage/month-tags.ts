import { Schema } from "mongoose";
import { groupCommit } from "#platform/concurrency/group-commit";
import { retry } from "#platform/concurrency/retry";
import { type DocumentOf, openCollection } from "#platform/mongo/collection";
import { isDuplicate } from "#platform/mongo/connection";
import type { Uses } from "#platform/uses";
import { dayOf, monthOfDay } from "./dates.ts";

/** Tags of an account by which the usage of a month is summed. */
export const maxMonthTags = 1_000;
/** All further tags of the month. */
const otherTag = "other";

const definition = {
  /** Account and month. */
  _id: { type: Schema.Types.Mixed, required: true },
  account: { type: String, required: true },
  tags: { type: [String], required: true },
  createdAt: { type: Date, required: true },
} as const;
type StoredTags = DocumentOf<typeof definition>;

/** No call is captured in a month that has been over for so long. */
export const tagsLifetimeSeconds = 62 * 86_400;

/** Accounts whose tags are remembered. Each takes at most 100 KB. */
const maxAccounts = 200;
const maxGroup = 100;

interface Asked {
  readonly account: string;
  readonly month: string;
  readonly at: Date;
  readonly tags: readonly string[];
}

export type CountTags = ReturnType<typeof createMonthTags>;

/**
 * The collection `usageTags`: the tags of an account that usage is summed by in a month, in the order in which they came,
 * one document for each account and month. A tag that is in it stays in it, so the same tag is summed under the same name
 * all month. One conditional write adds a tag unless the list is full, so no number of processes exceeds the limit. Known
 * tags, and any tags once the list is full, are answered from memory.
 */
export function createMonthTags({ mongo, clock, log }: Uses<"mongo" | "clock" | "log">) {
  const { collection } = openCollection<StoredTags>(mongo, "usageTags", definition);
  /** Keyed by month and account, the least recently used first. */
  const known = new Map<string, ReadonlySet<string>>();

  function remember(name: string, tags: ReadonlySet<string>): void {
    known.delete(name);
    known.set(name, tags);
    const [oldest] = known.keys();
    if (known.size > maxAccounts && oldest !== undefined) known.delete(oldest);
  }

  async function add({ account, month, at }: Asked, tags: readonly string[]): Promise<ReadonlySet<string>> {
    const stored = { $ifNull: ["$tags", []] };
    // Literal, because a tag may begin with a dollar sign.
    const all = { $concatArrays: [stored, { $setDifference: [{ $literal: tags }, stored] }] };
    const change = [
      { $set: { account, createdAt: { $ifNull: ["$createdAt", at] }, tags: { $slice: [all, maxMonthTags] } } },
    ];
    const options = { upsert: true, returnDocument: "after" } as const;
    // Two processes may insert the document at once.
    const found = await retry({ clock, backoff: { firstMs: 5, maxMs: 50 }, retryIf: isDuplicate }, () =>
      collection.findOneAndUpdate({ _id: { account, month }, account }, change, options),
    );
    return new Set(found?.tags);
  }

  const commit = groupCommit<Asked, ReadonlySet<string>>({
    limit: maxGroup,
    async write(name, group) {
      const [first] = group;
      const added = first ? await add(first, [...new Set(group.flatMap(({ tags }) => tags))]) : new Set<string>();
      remember(name, added);
      return group.map(() => added);
    },
  });

  /**
   * Returns the names under which the tags of an entry of this time are summed, each once: the same list if they are the
   * tags themselves. Never fails: without an answer
   * of MongoDB, new tags are summed as other.
   */
  return async function countTags(account: string, at: Date, tags: readonly string[]): Promise<readonly string[]> {
    const month = monthOfDay(dayOf(at));
    const name = `${month} ${account}`;
    let counted = known.get(name);
    if (counted) remember(name, counted);
    counted ??= new Set();
    const unknown = tags.filter((tag) => tag !== otherTag && !counted?.has(tag));
    if (unknown.length === 0) return tags;
    if (counted.size < maxMonthTags)
      try {
        counted = await commit(name, JSON.stringify(unknown), { account, month, at, tags: unknown });
      } catch (error) {
        log.warn({ err: error, account }, "tags of a call could not be counted; they are summed as other");
      }
    if (tags.every((tag) => tag === otherTag || counted?.has(tag))) return tags;
    return [...new Set(tags.map((tag) => (counted?.has(tag) ? tag : otherTag)))];
  };
}
