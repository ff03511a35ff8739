import type { JsonObject } from "#json";
import { findPage, type Page } from "#platform/mongo/collection";
import type { Collections, StoredNotice } from "./collections.ts";
import type { EventType } from "./event-types.ts";

/** A notice, as a webhook sends it. */
export interface Notice {
  readonly id: string;
  readonly object: "event";
  /** Unix seconds. */
  readonly created_at: number;
  readonly type: EventType;
  readonly data: JsonObject & { readonly id: string };
}

const toNotice = ({ body }: StoredNotice) => JSON.parse(body) as Notice;

/** The notices of an account. */
export const createNotices = ({ notices }: Pick<Collections, "notices">) => ({
  /** Newest first. Throws 400 for an unknown `after`. */
  async list(account: string, page: Page): Promise<Notice[]> {
    return (await findPage(notices, page, { unknown: "this account has no event", owner: { account } })).map(toNotice);
  },

  /** The last notice about an object. */
  async latest(account: string, objectId: string): Promise<Notice | undefined> {
    const found = await notices.findOne({ account, objectId }, { sort: { createdAt: -1, _id: -1 } });
    return found ? toNotice(found) : undefined;
  },
});
