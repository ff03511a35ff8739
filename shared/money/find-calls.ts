import type { mongo as driver } from "mongoose";
import { invalidValue } from "#errors";
import { olderThan, type Page, scatter } from "#platform/mongo/collection";
import type { MoneyDeps } from "./deps.ts";
import {
  accountIndex,
  answerIndex,
  anyStatusIndex,
  byId,
  errorIndex,
  keyIndex,
  type LedgerEntry,
  modelIndex,
  type RequestRecord,
  type StoredEntry,
  sessionIndex,
  statusIndex,
  tagIndex,
  timeIndex,
  toEntry,
  userIndex,
} from "./ledger.ts";

export interface CallQuery extends Page {
  /** Defaults to all accounts, for operators. */
  readonly account?: string | undefined;
  /** Requires an account. */
  readonly key?: string | undefined;
  readonly status?: RequestRecord["status"] | undefined;
  readonly model?: string | undefined;
  readonly endpoint?: string | undefined;
  /** The code of the error in the response. */
  readonly code?: string | undefined;
  readonly upstream?: string | undefined;
  /** Each of the next four requires an account. */
  readonly sessionId?: string | undefined;
  readonly user?: string | undefined;
  readonly tag?: string | undefined;
  /** The id of the account's provider key with which the call ran. */
  readonly providerKey?: string | undefined;
  /** The time at which the call ended: `from` is inclusive, `to` exclusive. */
  readonly from?: Date | undefined;
  readonly to?: Date | undefined;
}

/** Calls, newest first. If `next` is set there may be more after it, even if this page is not full. */
export interface CallPage {
  readonly calls: readonly LedgerEntry[];
  readonly next: string | undefined;
}

type Filter = driver.Filter<StoredEntry>;

/** Limits what one page reads: filters without an index are compared with this many entries, about 10 ms. */
const windowEntries = 2_000;
const newestFirst = { createdAt: -1, _id: -1 } as const;
const isCall = { $in: ["usage", "storage"] };

/** Chooses the index that leaves the fewest calls to compare. Unsuccessful calls are rare. */
function indexFor({ account, key, status, model, code, sessionId, user, tag }: CallQuery) {
  const unsuccessful = status === undefined || status === "succeeded" ? undefined : status;
  if (account === undefined) {
    if (code !== undefined) return { hint: errorIndex, filter: { "request.error": code } };
    if (unsuccessful) return { hint: anyStatusIndex, filter: { "request.status": unsuccessful } };
    return { hint: timeIndex, filter: {} };
  }
  if (sessionId !== undefined) return { hint: sessionIndex, filter: { account, "request.sessionId": sessionId } };
  if (user !== undefined) return { hint: userIndex, filter: { account, "request.user": user } };
  if (tag !== undefined) return { hint: tagIndex, filter: { account, "request.tags": tag } };
  if (key !== undefined) return { hint: keyIndex, filter: { account, "request.key": key } };
  if (unsuccessful) return { hint: statusIndex, filter: { account, "request.status": unsuccessful } };
  if (model !== undefined) return { hint: modelIndex, filter: { account, "request.model": model } };
  return { hint: accountIndex, filter: { account } };
}

const notOlderThan = ({ _id, createdAt }: Pick<StoredEntry, "_id" | "createdAt">) => ({
  createdAt: { $gte: createdAt },
  $or: [{ createdAt: { $gt: createdAt } }, { _id: { $gte: _id } }],
});

/** The most selective filter may have its own index. The others are compared within a bounded window. */
export const createFindCalls =
  ({ ledger: { collection } }: MoneyDeps) =>
  async (query: CallQuery): Promise<CallPage> => {
    const { account, key, status, model, endpoint, code, upstream, from, to, limit, after } = query;
    const { sessionId, user, tag, providerKey } = query;
    const ofAll = account === undefined ? scatter("operator") : {};
    const position = { createdAt: 1 } as const;

    const last =
      after === undefined
        ? undefined
        : await collection.findOne(
            { _id: after, ...(account !== undefined && { account }) },
            { hint: byId, projection: position, ...ofAll },
          );
    if (last === null) throw invalidValue("after", `after: there is no request '${after}'.`);

    const { hint, filter } = indexFor(query);
    const time = { ...(from && { $gte: from }), ...(to && { $lt: to }) };
    const range: Filter[] = [
      {},
      ...(from || to ? [{ createdAt: time }] : []),
      ...(last ? [olderThan(last._id, last.createdAt)] : []),
    ];
    const given = {
      key,
      status,
      model,
      endpoint,
      upstream,
      error: code,
      sessionId,
      user,
      tags: tag,
      "byok.key": providerKey,
    };
    const compared = Object.entries(given).filter(([, value]) => value !== undefined);
    const options = { hint, sort: newestFirst, ...ofAll } as const;
    // Read first: entries inserted between the two reads are newer, and affect neither this end nor what follows it.
    const oldest = await collection.findOne({ ...filter, $and: range } as Filter, {
      ...options,
      skip: windowEntries - 1,
      projection: position,
    });
    const inWindow = {
      ...filter,
      $and: [
        ...range,
        ...(oldest ? [notOlderThan(oldest)] : []),
        {
          kind: isCall,
          ...Object.fromEntries(compared.map(([field, value]) => [`request.${field}`, value])),
        } as Filter,
      ],
    } as Filter;
    const found = await collection.find(inWindow, { ...options, limit: limit + 1 }).toArray();
    const calls = found.slice(0, limit).map(toEntry);
    return { calls, next: found.length > limit ? calls.at(-1)?.id : oldest?._id };
  };

/** Response ids made by the service end in this random part, after a prefix of their format. */
const randomPart = /(?:^|[_-])([0-9A-Za-z]{24})$/;

/** Finds a call by its request id or by the id of its response, of which the newest counts. */
export const createFindAnswer =
  ({ ledger }: MoneyDeps) =>
  async (account: string, id: string, key: string | undefined): Promise<LedgerEntry | undefined> => {
    const visible = (found: LedgerEntry | undefined) =>
      found?.request && (key === undefined || found.request.key === key) ? found : undefined;
    const random = randomPart.exec(id)?.[1];
    const made = random === undefined ? undefined : visible(await ledger.entry(account, `req_${random}`));
    if (made) return made;
    const ofAnswer = { account, "request.answerId": id, ...(key !== undefined && { "request.key": key }) };
    const options = { hint: answerIndex, sort: { createdAt: -1 } } as const;
    const stored = await ledger.collection.findOne(ofAnswer as object, options);
    return stored ? toEntry(stored) : undefined;
  };
