import { type InferRawDocType, Schema } from "mongoose";
import { fileExpired, noCapacity, upstreamError } from "#errors";
import type { Clock } from "#platform/clock";
import { openCollection } from "#platform/collection";
import { newFileId } from "#platform/ids";
import type { Logger } from "#platform/logger";
import type { Mongo } from "#platform/mongo";
import { type Spool, withSpool } from "#platform/spool";
import { unlessAborted } from "#platform/unless-aborted";
import { createExpiry } from "./expiry.ts";
import { detect, headBytes } from "./media-types.ts";
import { lifeDefinition, settlingMs } from "./records.ts";
import type { Storage } from "./storage.ts";
import type { GeneratedFiles } from "./types.ts";
import { reach } from "./unavailable.ts";

const definition = {
  ...lifeDefinition,
  contentType: { type: String },
  bytes: { type: Number },
  etag: { type: String },
} as const;
const schema = new Schema(definition, { collection: "files", strict: "throw", versionKey: false });
schema.index({ dueAt: 1 }, { sparse: true });

type StoredFile = InferRawDocType<typeof definition>;

const dayMs = 24 * 3_600_000;
/** Longer than one file takes to come: a record that still is pending then was left by a crash. */
const keepingMs = 2 * 3_600_000;
const fileKey = (id: string) => `files/${id}`;

interface Kept {
  readonly contentType: string;
  readonly bytes: number;
  readonly etag: string;
}

/** The collection `files`: what models made. The record comes first, so that expiry knows of every object. */
export function createGenerated(deps: { mongo: Mongo; storage: Storage; clock: Clock; log: Logger }) {
  const { mongo, storage, clock, log } = deps;
  const { model, collection, prepare } = openCollection<StoredFile>(mongo, "files", schema);
  const lives = createExpiry({ collection, keyOf: fileKey, storage, clock, log });

  /** `unsure`: storage may still be making objects of them; then expiry looks again when that has ended. */
  async function end(ids: readonly string[], unsure: boolean): Promise<void> {
    try {
      const dueAt = new Date(clock.now() + (unsure ? settlingMs : 0));
      const set = { status: "deleted" as const, announced: false, dueAt };
      await reach(collection.updateMany({ _id: { $in: [...ids] } }, { $set: set }));
      if (unsure) await storage.remove(ids.map(fileKey));
      else await lives.finish(ids);
    } catch (error) {
      log.warn({ err: error, files: ids.length }, "files that nobody gets are left to expiry");
    }
  }

  async function store(id: string, ask: Parameters<GeneratedFiles["keep"]>[0]): Promise<Kept> {
    const { body, limitBytes, signal } = ask;
    if (!Buffer.isBuffer(body)) return storeStream(id, body, limitBytes, signal);
    if (body.length > limitBytes) throw tooLarge(limitBytes);
    if (body.length === 0) throw empty();
    const contentType = await typeOf(body.subarray(0, headBytes));
    return { contentType, bytes: body.length, etag: await storage.put(fileKey(id), contentType, body, signal) };
  }

  /** Through a file, so that the length is known. It has no name: a crash leaves nothing. */
  async function storeStream(id: string, body: AsyncIterable<Buffer>, limitBytes: number, signal: AbortSignal) {
    return withSpool(noDisk, async (spool) => {
      const bytes = await fill(spool, body, limitBytes, signal);
      if (bytes === 0) throw empty();
      const contentType = await typeOf(await first(spool.read()));
      const etag = await storage.send({ key: fileKey(id), contentType, bytes, chunks: spool.read(), signal });
      return { contentType, bytes, etag };
    });
  }

  const generated: Omit<GeneratedFiles, "remember" | "remembered"> = {
    async keep(ask) {
      const { account, requestId, signal } = ask;
      const id = newFileId();
      const createdAt = clock.now();
      const expiresAt = createdAt + dayMs;
      const record: StoredFile = {
        _id: id,
        account,
        requestId,
        status: "pending",
        announced: false,
        createdAt: new Date(createdAt),
        expiresAt: new Date(expiresAt),
        dueAt: new Date(createdAt + keepingMs),
      };
      try {
        await reach(model.create([record]));
        const kept = await store(id, ask);
        const set = { ...kept, status: "active" as const, announced: true, dueAt: record.expiresAt };
        const { matchedCount } = await reach(model.updateOne({ _id: id, status: "pending" }, { $set: set }).exec());
        if (matchedCount === 0) throw noCapacity("A file took too long to be kept; nothing was charged.");
        return { id, contentType: kept.contentType, bytes: kept.bytes, createdAt, expiresAt };
      } catch (error) {
        await end([id], true);
        signal.throwIfAborted();
        throw error;
      }
    },
    drop: (ids) => end(ids, false),
    async find(id) {
      const found = await reach(model.findOne({ _id: id, announced: true }).lean<StoredFile>().exec());
      if (!found) return undefined;
      const { status, contentType, bytes, etag, expiresAt } = found;
      if (status !== "active" || expiresAt.getTime() <= clock.now()) return "expired";
      if (!contentType || bytes == null || !etag) throw new Error(`the record of ${id} is not whole`);
      return { id, contentType, bytes, etag, expiresAt: expiresAt.getTime() };
    },
    async open(id, range, signal) {
      const opened = await storage.open(fileKey(id), range, signal);
      if (!opened) throw fileExpired();
      return opened.body;
    },
  };

  return { ...generated, prepare, round: () => lives.round() };
}

/** Returns how much there was. */
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
    // It may wait for a piece that never comes.
    source.return?.().catch(() => undefined);
  }
}

async function first(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  for await (const chunk of chunks) return chunk;
  return Buffer.alloc(0);
}

const noDisk = (cause: unknown) => noCapacity("The temporary storage for files is full or away.", 5, cause);
const typeOf = async (head: Buffer): Promise<string> => (await detect(head))?.mime ?? "application/octet-stream";

const tooLarge = (limitBytes: number) => upstreamError(`The model made a file of more than ${limitBytes} bytes.`);
const empty = () => upstreamError("The model made an empty file.");
