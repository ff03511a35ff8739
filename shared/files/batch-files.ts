import type { Collection } from "mongoose";
import { batchFileExpired, fileNotFound, fileQuotaExceeded, noCapacity } from "#errors";
import { dayMs } from "#platform/clock";
import { hashedBatchFileId, newBatchFileId } from "#platform/ids";
import { type DocumentOf, findPage, openCollection, type Page } from "#platform/mongo/collection";
import { ignoreDuplicate } from "#platform/mongo/connection";
import type { Uses } from "#platform/uses";
import { createExpiry, type Owner } from "./expiry.ts";
import { expiryGraceMs, fromMongo, objectFields, type StoredObject } from "./records.ts";
import type { Storage } from "./storage.ts";

export const batchFilePurposes = ["batch", "batch_output"] as const;
type Purpose = (typeof batchFilePurposes)[number];

/** A piece of a file's content: an object in the bucket. */
export interface FilePart {
  readonly key: string;
  readonly bytes: number;
}

const part = { key: { type: String, required: true }, bytes: { type: Number, required: true } } as const;
const definition = {
  ...objectFields,
  purpose: { type: String, enum: batchFilePurposes, required: true },
  filename: { type: String, required: true },
  bytes: { type: Number, required: true },
  parts: { type: [{ type: part, _id: false }], required: true },
} as const;
type StoredBatchFile = DocumentOf<typeof definition, { parts: readonly FilePart[] }>;

/** An account's document is written by each of its reservations, so that concurrent ones conflict. */
const usageDefinition = {
  _id: { type: String, required: true },
  reservations: { type: Number, required: true },
} as const;
type StoredUsage = DocumentOf<typeof usageDefinition>;

/** A file as lists have it. Times are unix milliseconds. */
export interface ListedFile {
  readonly id: string;
  readonly account: string;
  readonly purpose: Purpose;
  readonly filename: string;
  readonly bytes: number;
  readonly createdAt: number;
  readonly expiresAt: number;
}

export interface BatchFile extends ListedFile {
  /** The content, in order. An uploaded file has one part. */
  readonly parts: readonly FilePart[];
}

interface NewBatchFile {
  readonly account: string;
  readonly requestId: string;
  readonly filename: string;
  /** Counts from now. Defaults to 30 days. */
  readonly lifetimeMs?: number | undefined;
}

const defaultLifetimeMs = 30 * dayMs;
/** An expired file is known for this long. */
const knownMs = dayMs;
/** Longer than storing one file takes: a record that is still pending afterwards belongs to a crashed process. */
const storeTimeoutMs = 30 * 60_000;
/** Bounds the number of records, and of index entries that each reservation reads. */
const maxFiles = 50_000;
const partTimeoutMs = 30_000;
const contentType = "application/octet-stream";

const partKey = (owner: string, name: string) => `batch/${owner}/${name}`;
const bytesText = (bytes: number) => (bytes % 2 ** 30 === 0 ? `${bytes / 2 ** 30} GB` : `${bytes} bytes`);
const listed = ({ _id: id, account, purpose, filename, bytes, createdAt, expiresAt }: StoredBatchFile): ListedFile => ({
  id,
  account,
  purpose,
  filename,
  bytes,
  createdAt: createdAt.getTime(),
  expiresAt: expiresAt.getTime(),
});
const viewOf = (record: StoredBatchFile): BatchFile => ({ ...listed(record), parts: record.parts });

/**
 * The collections `batchFiles` and `batchFileUsage`: the input and the output of batches. A record is written before its
 * object, so that expiry knows of every object.
 */
export function createBatchFiles(
  deps: Uses<"mongo" | "clock" | "log"> & { readonly storage: Storage; readonly quotaBytes: number },
) {
  const { mongo, storage, quotaBytes, clock, log } = deps;
  const { model, collection } = openCollection<StoredBatchFile>(mongo, "batchFiles", definition);
  const usage = openCollection<StoredUsage>(mongo, "batchFileUsage", usageDefinition);

  async function keysOf(ids: readonly string[], owner: Owner) {
    const found = collection.find({ ...owner, _id: { $in: [...ids] } }, { projection: { parts: 1 } });
    const records = await fromMongo(found.toArray());
    return new Map(records.map(({ _id, parts }) => [_id, parts.map(({ key }) => key)]));
  }
  const objects = collection as unknown as Collection<StoredObject>;
  const expiry = createExpiry({ ...deps, collection: objects, keysOf, keepMs: knownMs });

  const living = () => ({ expiresAt: { $gt: new Date(clock.now()) } });
  const active = () => ({ status: "active" as const, ...living() });

  const recordOf = (
    { account, requestId, filename, lifetimeMs = defaultLifetimeMs }: NewBatchFile,
    more: Pick<StoredBatchFile, "_id" | "purpose" | "bytes" | "parts">,
  ): StoredBatchFile => {
    const now = clock.now();
    const expiresAt = new Date(now + lifetimeMs);
    return {
      account,
      requestId,
      filename,
      ...more,
      status: "active",
      announced: true,
      createdAt: new Date(now),
      expiresAt,
      dueAt: expiresAt,
    };
  };

  /** Inserts the record if the account may store its bytes in addition to its other files. Throws 400, 503. */
  async function reserve(record: StoredBatchFile): Promise<void> {
    const { account } = record;
    const isCounted = { account, status: { $in: ["pending", "active"] }, ...living() };
    const total = { _id: null, files: { $sum: 1 }, bytes: { $sum: "$bytes" } };
    // Outside of the transaction, because a concurrent upsert would end it.
    const opened = { $setOnInsert: { reservations: 0 } };
    await usage.model.updateOne({ _id: account }, opened, { upsert: true }).exec().catch(ignoreDuplicate);
    await mongo.inTransaction(async (session) => {
      await usage.model.updateOne({ _id: account }, { $inc: { reservations: 1 } }, { session });
      const [used] = await collection.aggregate([{ $match: isCounted }, { $group: total }], { session }).toArray();
      if (Number(used?.["bytes"] ?? 0) + record.bytes > quotaBytes) throw fileQuotaExceeded(bytesText(quotaBytes));
      if (Number(used?.["files"] ?? 0) >= maxFiles) throw fileQuotaExceeded(`${maxFiles} files`);
      await model.create([record], { session });
    });
  }

  /** Storage may still create the object, so expiry checks again later. */
  async function discard({ _id, account, parts }: StoredBatchFile): Promise<void> {
    try {
      const dueAt = new Date(clock.now() + expiryGraceMs);
      const set = { status: "deleted" as const, announced: false, dueAt };
      await fromMongo(collection.updateOne({ account, _id }, { $set: set }));
      await storage.remove(parts.map(({ key }) => key));
    } catch (error) {
      log.warn({ err: error, file: _id }, "a file that was not stored will be removed by expiry");
    }
  }

  const findRecord = (account: string, id: string): Promise<StoredBatchFile | null> =>
    fromMongo(model.findOne({ account, _id: id }).lean<StoredBatchFile>().exec());

  async function findOwned(account: string, id: string, param?: string): Promise<StoredBatchFile> {
    const record = await findRecord(account, id);
    const expiredMs = record ? clock.now() - record.expiresAt.getTime() : 0;
    const isKnown = record && (record.status === "active" || record.status === "expired") && expiredMs < knownMs;
    // A pending record that expires has never been announced.
    if (!isKnown || (record.status === "expired" && expiredMs < 0)) throw fileNotFound(id, param);
    if (expiredMs >= 0) throw batchFileExpired(id, param);
    return record;
  }

  async function* read(
    id: string,
    parts: readonly FilePart[],
    fromByte: number,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Buffer> {
    let skipped = fromByte;
    for (const { key, bytes } of parts) {
      if (skipped >= bytes) {
        skipped -= bytes;
        continue;
      }
      const range = skipped > 0 ? { start: skipped, end: bytes - 1 } : undefined;
      const opened = await storage.open(key, range, signal);
      if (!opened) throw batchFileExpired(id);
      let at = skipped;
      for await (const chunk of opened.body) {
        at += chunk.length;
        yield chunk;
      }
      if (at !== bytes) throw noCapacity("File storage has only a part of this file.");
      skipped = 0;
    }
  }

  const batchFiles = {
    /**
     * Stores an uploaded file of purpose `batch`. Throws 400 if the account would have more than its quota, also with
     * concurrent uploads, and 503; then nothing is stored.
     */
    async store(file: NewBatchFile & { readonly bytes: number; readonly body: AsyncIterable<Buffer> }) {
      const { bytes, body } = file;
      const _id = newBatchFileId();
      const key = `batch/${_id}`;
      const record = recordOf(file, { _id, purpose: "batch", bytes, parts: [{ key, bytes }] });
      const dueAt = new Date(record.createdAt.getTime() + storeTimeoutMs);
      try {
        await fromMongo(reserve({ ...record, status: "pending", announced: false, dueAt }));
        await storage.send({ key, contentType, bytes, chunks: body });
        const set = { status: record.status, announced: true, dueAt: record.expiresAt };
        const pending = { account: record.account, _id, status: "pending" as const };
        const { matchedCount } = await fromMongo(collection.updateOne(pending, { $set: set }));
        if (matchedCount === 0) throw noCapacity("Storing the file took too long.");
        return viewOf(record);
      } catch (error) {
        await discard(record);
        throw error;
      }
    },
    /**
     * Stores a part of an output file that is announced later, or deleted with `removeParts`. The parts of one `owner` are
     * under a prefix of their own. Throws 503.
     */
    async putPart(owner: string, name: string, text: string): Promise<FilePart> {
      const body = Buffer.from(text);
      const key = partKey(owner, name);
      await storage.put(key, contentType, body, AbortSignal.timeout(partTimeoutMs));
      return { key, bytes: body.length };
    },
    /** Never rejects. Parts that could not be deleted stay. */
    removeParts: async (parts: readonly FilePart[]): Promise<void> => {
      await storage.remove(parts.map(({ key }) => key));
    },
    /** Deletes the parts of an owner that are not among these. Never rejects: the others stay until the bucket's rule. */
    async removeOtherParts(owner: string, parts: readonly FilePart[]): Promise<void> {
      const kept = new Set(parts.map(({ key }) => key));
      try {
        for await (const keys of storage.list(partKey(owner, "")))
          await storage.remove(keys.filter((key) => !kept.has(key)));
      } catch (error) {
        log.warn({ err: error, owner }, "parts that no file has could not be looked for");
      }
    },
    /** Reads parts one after the other. Throws 410 if one was deleted, and 503. */
    openParts: (id: string, parts: readonly FilePart[], signal?: AbortSignal) => read(id, parts, 0, signal),
    /**
     * Announces a file of purpose `batch_output`, whose parts are in storage under keys that begin with `batch/`. Expiry
     * deletes them. It counts towards the quota, but is never refused. Repeating it for the same `requestId` and `filename`
     * returns the file that exists.
     */
    async createOutput(file: NewBatchFile & { readonly parts: readonly FilePart[] }): Promise<BatchFile> {
      const { account, requestId, filename, parts } = file;
      const _id = hashedBatchFileId(account, requestId, filename);
      const bytes = parts.reduce((sum, each) => sum + each.bytes, 0);
      const record = recordOf(file, { _id, purpose: "batch_output", bytes, parts });
      await fromMongo(model.create([record]).catch(ignoreDuplicate));
      return viewOf((await findRecord(account, _id)) ?? record);
    },
    /** Throws 404, also for another account's file, and 410 within a day after expiry; both name `param`. */
    find: async (account: string, id: string, param?: string): Promise<BatchFile> =>
      viewOf(await findOwned(account, id, param)),
    /** Lists files that have not expired. Throws 400 for an unknown `after`. */
    async list(account: string, page: Page, purpose?: Purpose): Promise<readonly ListedFile[]> {
      const filter = { ...active(), ...(purpose && { purpose }) };
      const query = { unknown: "this account has no file", owner: { account }, filter, projection: { parts: 0 } };
      return (await fromMongo(findPage(collection, page, query))).map(listed);
    },
    /** Keeps a file at least until then, because a batch reads it. */
    async keepUntil(account: string, id: string, until: Date): Promise<void> {
      const kept = collection.updateOne(
        { account, _id: id, ...active() },
        { $max: { expiresAt: until, dueAt: until } },
      );
      await fromMongo(kept);
    },
    /** Throws 404, 410. */
    async delete(account: string, id: string): Promise<void> {
      await findOwned(account, id);
      const set = { status: "deleted" as const, announced: false, dueAt: new Date(clock.now()) };
      const deleted = collection.updateOne({ account, _id: id, ...active() }, { $set: set });
      if ((await fromMongo(deleted)).matchedCount === 0) throw fileNotFound(id);
      await expiry.cleanUp([id], { account }).catch((error: unknown) => {
        log.warn({ err: error, file: id }, "a deleted file will be cleaned up by expiry");
      });
    },
    /**
     * Reads a file from an offset on, over its parts. Throws 410 if a part was deleted, and 503 if storage is unavailable or
     * breaks off; a reader then goes on from the next offset.
     */
    open: ({ id, parts }: Pick<BatchFile, "id" | "parts">, fromByte = 0, signal?: AbortSignal) =>
      read(id, parts, fromByte, signal),
  };

  return { batchFiles, expiry };
}
