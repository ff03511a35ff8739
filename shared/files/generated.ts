import { fileExpired, noCapacity, upstreamError } from "#errors";
import { unlessAborted } from "#platform/concurrency/unless-aborted";
import { newFileId } from "#platform/ids";
import { type DocumentOf, findPage, openCollection, type Page, scatter } from "#platform/mongo/collection";
import { type Spool, withSpool } from "#platform/spool";
import type { Uses } from "#platform/uses";
import { createExpiry, oneObject } from "./expiry.ts";
import { detect, headBytes } from "./media-types.ts";
import { expiryGraceMs, fileLifetimeMs, fromMongo, objectFields } from "./records.ts";
import type { Storage } from "./storage.ts";

const fileFields = {
  ...objectFields,
  contentType: { type: String },
  bytes: { type: Number },
  etag: { type: String },
} as const;
type StoredFile = DocumentOf<typeof fileFields>;

const jobFields = {
  /** The request id. */
  _id: { type: String, required: true },
  upstream: { type: String, required: true },
  /** The id of the account's provider key with which it runs, if it is not the operator's. */
  key: { type: String },
  /** The provider's id of the job. */
  job: { type: String, required: true },
  expiresAt: { type: Date, required: true },
} as const;
type StoredJob = DocumentOf<typeof jobFields>;
export type ProviderJob = Pick<StoredJob, "upstream" | "job"> & { readonly key?: string | undefined };

interface NewFile {
  readonly account: string;
  readonly requestId: string;
  readonly body: Buffer | AsyncIterable<Buffer>;
  readonly limitBytes: number;
  readonly signal: AbortSignal;
}

/** The time in which a call made its files. */
interface Span {
  readonly from: Date;
  readonly to: Date;
}

const viewOf = ({ _id, requestId, contentType, bytes, createdAt, expiresAt }: StoredFile) => ({
  id: _id,
  requestId,
  contentType: contentType ?? "application/octet-stream",
  bytes: bytes ?? 0,
  createdAt: createdAt.getTime(),
  expiresAt: expiresAt.getTime(),
});

/** Longer than storing one file takes: a record that is still pending afterwards belongs to a crashed process. */
const storeTimeoutMs = 2 * 3_600_000;
/** The clocks of two machines may differ by this much. */
const clockSkewMs = 60_000;
const fileKey = (id: string) => `files/${id}`;

/**
 * The collections `files` and `generations`: files made by models, and the provider jobs that make them. The record of
 * a file is written before its object, so that expiry knows of every object.
 */
export function createGenerated(deps: Uses<"mongo" | "clock" | "log"> & { storage: Storage }) {
  const { mongo, storage, clock, log } = deps;
  const files = openCollection<StoredFile>(mongo, "files", fileFields);
  const jobs = openCollection<StoredJob>(mongo, "generations", jobFields);
  const expiry = createExpiry({ ...deps, collection: files.collection, keysOf: oneObject(fileKey) });

  /** Set `recheck` if storage may still create the objects, so that expiry checks again later. */
  async function remove(ids: readonly string[], recheck: boolean): Promise<void> {
    try {
      const dueAt = new Date(clock.now() + (recheck ? expiryGraceMs : 0));
      const set = { status: "deleted" as const, announced: false, dueAt };
      await fromMongo(files.collection.updateMany({ _id: { $in: [...ids] } }, { $set: set }));
      if (recheck) await storage.remove(ids.map(fileKey));
      else await expiry.cleanUp(ids);
    } catch (error) {
      log.warn({ err: error, files: ids.length }, "unused generated files will be removed by expiry");
    }
  }

  async function storeContent(id: string, { body, limitBytes, signal }: NewFile) {
    const key = fileKey(id);
    if (Buffer.isBuffer(body)) {
      if (body.length > limitBytes) throw tooLarge(limitBytes);
      if (body.length === 0) throw empty();
      const contentType = await typeOf(body.subarray(0, headBytes));
      return { contentType, bytes: body.length, etag: await storage.put(key, contentType, body, signal) };
    }
    // Spooled to disk, because storage requires the length first.
    return withSpool(noDisk, async (spool) => {
      const bytes = await fill(spool, body, limitBytes, signal);
      if (bytes === 0) throw empty();
      const contentType = await typeOf(await firstChunk(spool.read()));
      const etag = await storage.send({ key, contentType, bytes, chunks: spool.read(), signal });
      return { contentType, bytes, etag };
    });
  }

  function activeOf(account: string, requestId: string, { from, to }: Span) {
    const createdAt = { $gte: new Date(from.getTime() - clockSkewMs), $lte: new Date(to.getTime() + clockSkewMs) };
    const filter = { account, createdAt, requestId, status: "active" as const };
    return fromMongo(files.collection.find(filter, scatter("files of an account")).toArray());
  }

  /** Files made by models. Their ids cannot be guessed; anyone who has an id may read the file. */
  const generated = {
    /** Detects the type from the bytes. Rejects with the signal's reason, `noCapacity`, or 502 over the limit. */
    async store(file: NewFile) {
      const { account, requestId, signal } = file;
      const id = newFileId();
      const createdAt = clock.now();
      const expiresAt = createdAt + fileLifetimeMs;
      const record: StoredFile = {
        _id: id,
        account,
        requestId,
        status: "pending",
        announced: false,
        createdAt: new Date(createdAt),
        expiresAt: new Date(expiresAt),
        dueAt: new Date(createdAt + storeTimeoutMs),
      };
      try {
        await fromMongo(files.model.create([record]));
        const stored = await storeContent(id, file);
        const set = { ...stored, status: "active" as const, announced: true, dueAt: record.expiresAt };
        const activated = files.model.updateOne({ _id: id, status: "pending" }, { $set: set });
        const { matchedCount } = await fromMongo(activated.exec());
        if (matchedCount === 0) throw noCapacity("Storing a file took too long; nothing was charged.");
        return { id, contentType: stored.contentType, bytes: stored.bytes, createdAt, expiresAt };
      } catch (error) {
        await remove([id], true);
        signal.throwIfAborted();
        throw error;
      }
    },
    /** Never rejects: files that cannot be removed now will expire. */
    delete: (ids: readonly string[]) => remove(ids, false),
    /** Deletes the files of a call that made them between these times, give or take a minute. */
    async deleteOf(account: string, requestId: string, span: Span): Promise<void> {
      const ids = (await activeOf(account, requestId, span)).map(({ _id }) => _id);
      if (ids.length > 0) await remove(ids, false);
    },
    /** The files that a call made between these times, give or take a minute, and that have not expired. */
    async madeBy(account: string, requestId: string, span: Span) {
      // They have expired with the day of the call.
      if (span.to.getTime() + fileLifetimeMs + clockSkewMs < clock.now()) return [];
      const found = await activeOf(account, requestId, span);
      return found.filter(({ expiresAt }) => expiresAt.getTime() > clock.now()).map(viewOf);
    },
    /** Returns undefined if there never was such a file. */
    async find(id: string) {
      const found = await fromMongo(files.model.findOne({ _id: id, announced: true }).lean<StoredFile>().exec());
      if (!found) return undefined;
      const { status, contentType, bytes, etag, expiresAt } = found;
      if (status !== "active" || expiresAt.getTime() <= clock.now()) return "expired" as const;
      if (!contentType || bytes == null || !etag) throw new Error(`the record of ${id} is incomplete`);
      return { id, contentType, bytes, etag, expiresAt: expiresAt.getTime() };
    },
    /** Lists files that have not expired, newest first. Throws 400 for an unknown `after`. */
    async list(account: string, page: Page) {
      const filter = { status: "active" as const, expiresAt: { $gt: new Date(clock.now()) } };
      const query = {
        unknown: "this account has no file",
        owner: { account },
        filter,
        ...scatter("files of an account"),
      };
      const found = await fromMongo(findPage(files.collection, page, query));
      return found.map(viewOf);
    },
    /** `end` is inclusive. Throws 410 when the object was deleted, 503 while storage is unavailable. */
    async open(id: string, range: { start: number; end: number } | undefined, signal: AbortSignal) {
      const opened = await storage.open(fileKey(id), range, signal);
      if (!opened) throw fileExpired();
      return opened.body;
    },
    /** Stores the provider job of a call for 24 hours, so that the next delivery continues it. */
    async storeProviderJob(requestId: string, { upstream, key, job }: ProviderJob) {
      const $set = {
        upstream,
        ...(key !== undefined && { key }),
        job,
        expiresAt: new Date(clock.now() + fileLifetimeMs),
      };
      await fromMongo(jobs.model.updateOne({ _id: requestId }, { $set }, { upsert: true }).exec());
    },
    async findProviderJob(requestId: string): Promise<ProviderJob | undefined> {
      const current = { _id: requestId, expiresAt: { $gt: new Date(clock.now()) } };
      const found = await fromMongo(jobs.model.findOne(current).lean<StoredJob>().exec());
      if (!found) return undefined;
      const { upstream, key, job } = found;
      return { upstream, job, ...(key != null && { key }) };
    },
  };

  return { generated, expiry };
}

async function fill(spool: Spool, body: AsyncIterable<Buffer>, limitBytes: number, signal: AbortSignal) {
  const source = body[Symbol.asyncIterator]();
  let bytes = 0;
  try {
    for (;;) {
      const { done, value } = await unlessAborted(signal, () => source.next());
      if (done) return bytes;
      bytes += value.length;
      if (bytes > limitBytes) throw tooLarge(limitBytes);
      await spool.write(value);
    }
  } finally {
    // This is not awaited, because it may wait for a chunk that never comes.
    source.return?.().catch(() => undefined);
  }
}

async function firstChunk(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  for await (const chunk of chunks) return chunk;
  return Buffer.alloc(0);
}

const noDisk = (cause: unknown) => noCapacity("The temporary storage for files is full or unavailable.", 5, cause);
const typeOf = async (head: Buffer): Promise<string> => (await detect(head))?.mime ?? "application/octet-stream";

const tooLarge = (limitBytes: number) => upstreamError(`The model generated a file of more than ${limitBytes} bytes.`);
const empty = () => upstreamError("The model generated an empty file.");
