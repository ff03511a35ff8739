/**
 * Responses of the Responses format, stored for their account for 24 hours, so that a later request can refer to them
 * or to their items (docs/guides/formats.md, "Stored responses"). Owns the collection `responses`. Also the events of
 * responses that run in the background (`createEventLogs`, docs/api/background.md): owns the Redis prefix `events:`.
 *
 * A document contains the whole resolved input of its request in addition to the response: a conversation continues
 * from its last response alone, and any earlier one may be deleted. Responses are looked up only together with the
 * account, so that another account's ids are unknown.
 */
import { noCapacity } from "#errors";
import type { Files } from "#files";
import { type JsonObject, list, text } from "#json";
import { dayMs } from "#platform/clock";
import { compress, decompress } from "#platform/compression";
import { groupCommit } from "#platform/concurrency/group-commit";
import { hashedId } from "#platform/ids";
import { type DocumentOf, openCollection } from "#platform/mongo/collection";
import { createCollections } from "#platform/mongo/migration-steps";
import type { ModuleSchema } from "#platform/mongo/migrations";
import type { Uses } from "#platform/uses";

export {
  createEventLogs,
  type EventLogEntry,
  type EventLogName,
  type EventLogs,
  type EventLogWriter,
} from "./event-log.ts";

export interface StoredResponse {
  readonly input: readonly JsonObject[];
  /** The response as its caller received it. */
  readonly response: JsonObject;
}

interface Quota {
  readonly responses: number;
  readonly bytes: number;
}

/** Called before a response is read, to reserve memory for its text. May throw. */
type Reserve = (textBytes: number) => void;

const definition = {
  /** A hash of the account and the id. */
  _id: { type: String, required: true },
  account: { type: String, required: true },
  requestId: { type: String, required: true },
  /** Ids of output items. */
  items: { type: [String], required: true },
  createdAt: { type: Date, required: true },
  expiresAt: { type: Date, required: true },
  /** The compressed size. */
  bytes: { type: Number, required: true },
  textBytes: { type: Number, required: true },
  /** Unset if it is in object storage. */
  zstd: { type: Buffer },
} as const;
type Stored = DocumentOf<typeof definition, { zstd?: Buffer }>;

export const responsesSchema = {
  module: "responses",
  shardKeys: { responses: "account" },
  migrations: [
    createCollections("responses", [
      {
        collection: "responses",
        indexes: [
          { key: { account: 1, items: 1, createdAt: -1 } },
          { key: { account: 1, expiresAt: 1, bytes: 1 } },
          { key: { expiresAt: 1 }, expireAfterSeconds: 0 },
        ],
      },
    ]),
  ],
} satisfies ModuleSchema;

const maxInlineBytes = 64 * 1024;
/** Limit of the JSON. A larger response is not stored. */
const maxTextBytes = 16 * 1024 * 1024;
const maxItems = 1_000;
/** Documents of up to 64 KB in one write. */
const maxGroup = 64;
const maxIdLength = 200;
/** Sufficient, because a conversation needs only its last response. */
const maxSearched = 100;
const defaultQuota: Quota = { responses: 50_000, bytes: 512 * 1024 * 1024 };

const objectName = (requestId: string) => `${requestId}.response`;
const isId = (id: string) => id !== "" && id.length <= maxIdLength;
const unavailable = (cause: unknown): never => {
  throw noCapacity("Stored responses are unavailable.", 2, cause);
};

interface Used {
  readonly countedAt: number;
  readonly total: Promise<{ responses: number; bytes: number }>;
}

const countedForMs = 60_000;
const maxAccounts = 10_000;

/**
 * Bounds what an account stores. Each process counts once a minute and adds what it stores itself. The bound may
 * therefore be exceeded by what other processes store within that minute, but no call waits for a counter that all
 * calls of an account change.
 */
function createQuota(deps: Uses<"clock"> & { quota: Quota; count: (account: string) => Promise<Quota> }) {
  const { quota, clock, count } = deps;
  const accounts = new Map<string, Used>();

  function usedBy(account: string): Used {
    const known = accounts.get(account);
    if (known && clock.now() - known.countedAt < countedForMs) return known;
    if (accounts.size >= maxAccounts) accounts.clear();
    const total = count(account).then((counted) => ({ ...counted }));
    const used = { countedAt: clock.now(), total };
    accounts.set(account, used);
    total.catch(() => accounts.delete(account));
    return used;
  }

  async function fits(account: string, bytes: number): Promise<false | { responses: number; bytes: number }> {
    const total = await usedBy(account).total;
    return total.responses < quota.responses && total.bytes + bytes <= quota.bytes && total;
  }
  return {
    fits: async (account: string): Promise<boolean> => (await fits(account, 1)) !== false,
    /** Counts one response of this size, if it fits. */
    async take(account: string, bytes: number): Promise<boolean> {
      const total = await fits(account, bytes);
      if (!total) return false;
      total.responses++;
      total.bytes += bytes;
      return true;
    },
  };
}

export function createStoredResponses(
  deps: Uses<"mongo" | "clock" | "log"> & {
    files: Pick<Files, "putAnswer" | "getAnswer" | "deleteAnswer">;
    quota?: Quota;
  },
) {
  const { mongo, files, clock, log, quota = defaultQuota } = deps;
  const { collection } = openCollection<Stored>(mongo, "responses", definition);
  const living = () => ({ expiresAt: { $gt: new Date(clock.now()) } });

  async function count(account: string): Promise<Quota> {
    const totals = { _id: null, responses: { $sum: 1 }, bytes: { $sum: "$bytes" } };
    const [found] = await collection.aggregate([{ $match: { account, ...living() } }, { $group: totals }]).toArray();
    return { responses: Number(found?.["responses"] ?? 0), bytes: Number(found?.["bytes"] ?? 0) };
  }
  const ofAccount = createQuota({ quota, clock, count });

  /** Groups writes, because every default call of the format stores its response. */
  const write = groupCommit<Stored, true>({
    limit: maxGroup,
    async write(_, group) {
      const replacements = group.map((stored) => ({
        replaceOne: { filter: { account: stored.account, _id: stored._id }, replacement: stored, upsert: true },
      }));
      await collection.bulkWrite(replacements, { ordered: false });
      return group.map(() => true as const);
    },
  });

  async function read({ requestId, zstd }: Stored): Promise<StoredResponse> {
    const bytes = zstd ?? (await files.getAnswer(objectName(requestId)));
    return JSON.parse(await decompress(bytes)) as StoredResponse;
  }

  async function find(account: string, id: string, reserve?: Reserve): Promise<StoredResponse | undefined> {
    if (!isId(id)) return undefined;
    const filter = { account, _id: hashedId(account, id), ...living() };
    const stored = await collection.findOne(filter, { promoteBuffers: true }).catch(unavailable);
    if (!stored) return undefined;
    reserve?.(stored.textBytes);
    return read(stored).catch(unavailable);
  }

  /** Returns the items that are found. The newest responses are read first, because usually one has all items. */
  async function findItems(
    account: string,
    ids: ReadonlySet<string>,
    reserve: Reserve,
  ): Promise<ReadonlyMap<string, JsonObject>> {
    const found = new Map<string, JsonObject>();
    const wanted = new Set([...ids].filter(isId));
    const filter = { account, items: { $in: [...wanted] }, ...living() };
    const options = { projection: { items: 1, requestId: 1, textBytes: 1 } };
    const candidates = await collection
      .find(filter, options)
      .sort({ createdAt: -1 })
      .limit(maxSearched)
      .toArray()
      .catch(unavailable);
    for (const { _id, items, textBytes } of candidates) {
      if (!items.some((id) => wanted.has(id))) continue;
      reserve(textBytes);
      const stored = await collection.findOne({ account, _id }, { promoteBuffers: true }).catch(unavailable);
      if (!stored) continue;
      const { input, response } = await read(stored).catch(unavailable);
      for (const item of [...input, ...list(response["output"])].toReversed()) {
        const id = text(item["id"]);
        if (wanted.delete(id)) found.set(id, item);
      }
      if (wanted.size === 0) break;
    }
    return found;
  }

  /** Returns false if it is too large, or if the account has stored too much. Rejects if a store is unavailable. */
  async function put(
    { account, requestId }: Pick<Stored, "account" | "requestId">,
    { input, response }: StoredResponse,
  ): Promise<boolean> {
    const id = text(response["id"]);
    const items = [...new Set(list(response["output"]).map((item) => text(item["id"])))].filter((each) => each !== "");
    if (![id, ...items].every(isId) || items.length > maxItems) return false;
    const json = JSON.stringify({ input, response } satisfies StoredResponse);
    const textBytes = Buffer.byteLength(json);
    if (textBytes > maxTextBytes) return false;
    const zstd = await compress(json);
    const bytes = zstd.length;
    if (!(await ofAccount.take(account, bytes))) return false;
    const isInline = bytes <= maxInlineBytes;
    if (!isInline) await files.putAnswer(objectName(requestId), zstd);
    const createdAt = new Date(clock.now());
    const expiresAt = new Date(clock.now() + dayMs);
    const _id = hashedId(account, id);
    const stored = {
      _id,
      account,
      requestId,
      items,
      createdAt,
      expiresAt,
      bytes,
      textBytes,
      ...(isInline && { zstd }),
    };
    await write("", _id, stored);
    return true;
  }

  return {
    put,
    /** Returns false if the account stores as much as it may. */
    hasRoom: (account: string): Promise<boolean> => ofAccount.fits(account).catch(unavailable),
    find,
    findItems,
    /** Returns false if there is none. */
    async delete(account: string, id: string): Promise<boolean> {
      if (!isId(id)) return false;
      const filter = { account, _id: hashedId(account, id), ...living() };
      const stored = await collection.findOneAndDelete(filter, { projection: { zstd: 0 } }).catch(unavailable);
      if (!stored) return false;
      const { requestId, bytes } = stored;
      if (bytes > maxInlineBytes)
        await files.deleteAnswer(objectName(requestId)).catch((error: Error) => {
          log.warn({ err: error.message, requestId }, "a deleted response will be removed by expiry");
        });
      return true;
    },
  };
}

export type StoredResponses = ReturnType<typeof createStoredResponses>;
