import { setImmediate as endOfTurn } from "node:timers/promises";
import { invalidValue, noCapacity, uploadExpired, uploadNotFound } from "#errors";
import type { UploadRef } from "#formats";
import type { ByteShare } from "#platform/byte-budget";
import type { Page } from "#platform/mongo/collection";
import type { Uses } from "#platform/uses";
import type { MediaType } from "./media-types.ts";
import { createParts } from "./parts.ts";
import { createReceiving } from "./receiving.ts";
import { type StoredUpload, statusAt, uploadEnded, uploadKey } from "./records.ts";
import type { Upload, UploadDeps } from "./upload-view.ts";

/** Providers with queues fetch a file only when its job starts. */
const linkLifetimeMs = 3_600_000;

/** Base64 text is in the request object, its JSON and the socket's copy: three times 4/3 of the file. */
const base64Copies = 4;
const retryAfterSeconds = 2;
/** Signing this many uploads' links takes about 10 ms of the event loop. */
const signedAtOnce = 50;

interface Usable extends MediaType {
  readonly id: string;
  readonly param: string;
  readonly bytes: number;
  readonly expiresAt: number;
}

type Deps = UploadDeps &
  Uses<"log"> & {
    /** Providers can reach links if storage has a public address. */
    readonly providersReachLinks: boolean;
  };

export function createUploads(deps: Deps) {
  const { records, storage, lifecycle, links, providersReachLinks, toUpload, clock, log } = deps;

  /** Throws an error that names the field if the upload cannot be used. */
  function usable(account: string, ref: UploadRef, record: StoredUpload | undefined): Usable {
    const { id, param, kind: wanted } = ref;
    // A temporary file is never announced.
    const isKnown = record?.account === account && (record.announced || record.status === "active");
    if (!isKnown) throw uploadNotFound(id, param);
    const status = statusAt(record, clock.now());
    if (status === "pending") throw invalidValue(param, `${param}: the upload '${id}' is not complete.`);
    if (status !== "active") throw uploadEnded(record, status, param);
    const { mime, kind, bytes, expiresAt } = record;
    if (!mime || !kind) throw new Error(`the record of ${id} has no type`);
    if (wanted !== undefined && kind !== wanted)
      throw invalidValue(param, `${param}: the upload '${id}' is of kind ${kind}, not ${wanted}.`);
    return { id, param, mime, kind, bytes, expiresAt: expiresAt.getTime() };
  }

  /**
   * Checks owner, state and kind of every upload that a request refers to. Errors name the field of `refs`. Returns
   * each upload once, under the first field that refers to it.
   */
  async function check(account: string, refs: readonly UploadRef[]): Promise<Map<string, Usable>> {
    const found = refs.length === 0 ? [] : await records.findAll([...new Set(refs.map(({ id }) => id))]);
    const byId = new Map(found.map((record) => [record._id, record]));
    const files = new Map<string, Usable>();
    for (const ref of refs) {
      const file = usable(account, ref, byId.get(ref.id));
      if (!files.has(ref.id)) files.set(ref.id, file);
    }
    return files;
  }

  async function read({ id, param, bytes }: Usable, signal: AbortSignal): Promise<Buffer> {
    const opened = await storage.open(uploadKey(id), undefined, signal);
    if (!opened) throw uploadExpired(id, param);
    return Buffer.concat(await Array.fromAsync(opened.body), bytes);
  }

  function reader(file: Usable, signal: AbortSignal, memory: ByteShare | undefined) {
    const { id, param, bytes } = file;
    let takenBytes = 0;
    const returnBytes = (maxBytes: number) => {
      const returned = Math.min(maxBytes, takenBytes);
      takenBytes -= returned;
      memory?.give(returned);
    };
    async function readWithin<T>(limitBytes: number, neededBytes: number, use: (content: Buffer) => T): Promise<T> {
      if (bytes > limitBytes)
        throw invalidValue(
          param,
          `${param}: the upload '${id}' has ${bytes} bytes; the model accepts at most ${limitBytes}.`,
        );
      signal.throwIfAborted();
      if (memory?.take(neededBytes) === false)
        throw noCapacity(
          `${param}: there is not enough memory for an upload of this size right now.`,
          retryAfterSeconds,
        );
      takenBytes += neededBytes;
      try {
        return use(await read(file, signal));
      } catch (error) {
        returnBytes(neededBytes);
        throw error;
      }
    }
    return {
      /** Throws 400 that names the field if the file has more than `limitBytes`, and 503 if memory is short. */
      read: (limitBytes: number) => readWithin(limitBytes, bytes, (content) => content),
      /** Like `read`, but returns base64, which the request will contain `times` times. */
      base64: (limitBytes: number, times = 1) =>
        readWithin(limitBytes, base64Copies * times * bytes, (content) => content.toString("base64")),
      /** Releases the memory of the content before the call ends. */
      release: () => returnBytes(takenBytes),
    };
  }

  /** Repeats the check, and returns files that a provider may use. Reading them takes bytes of `memory`. */
  async function resolve(account: string, refs: readonly UploadRef[], signal: AbortSignal, memory?: ByteShare) {
    const files = [...(await check(account, refs)).values()].map(async (file) => {
      const { id, param, mime, kind, bytes, expiresAt } = file;
      const now = clock.now();
      const life = { from: now, until: Math.min(now + linkLifetimeMs, expiresAt) };
      const link = providersReachLinks ? await links.get(uploadKey(id), mime, life) : undefined;
      return [id, { id, param, mime, kind, bytes, link, ...reader(file, signal, memory) }] as const;
    });
    return new Map(await Promise.all(files));
  }

  return {
    ...createReceiving(deps),
    ...createParts(deps),
    check,
    resolve,
    isPending: records.isPending,
    /** Throws 404, 410. */
    async find(account: string, id: string): Promise<Upload> {
      const record = await records.findOwned(account, id);
      const status = statusAt(record, clock.now());
      if (status === "expired" || status === "deleted") throw uploadEnded(record, status);
      return toUpload(record);
    },
    /** Lists uploads of the last 24 hours, in every state, newest first. Throws 400 for an unknown `after`. */
    async list(account: string, page: Page) {
      const found = await records.list(account, page);
      const listed = found.slice(0, page.limit);
      const data: Upload[] = [];
      while (data.length < listed.length) {
        data.push(...(await Promise.all(listed.slice(data.length, data.length + signedAtOnce).map(toUpload))));
        await endOfTurn();
      }
      return { data, hasMore: found.length > page.limit };
    },
    /** Throws 404, 410. */
    async delete(account: string, id: string): Promise<void> {
      const record = await records.findOwned(account, id);
      if (!(await records.remove(id))) {
        const current = (await records.find(id)) ?? record;
        throw uploadEnded(record, statusAt(current, clock.now()));
      }
      await lifecycle.expiry.cleanUp([id]).catch((error: unknown) => {
        log.warn({ err: error, upload: id }, "a deleted upload will be cleaned up by expiry");
      });
    },
    /** Finds the upload that a request created, in any state. Used for idempotency. */
    async findByRequest(account: string, requestId: string): Promise<Upload | undefined> {
      const record = await records.findByRequest(account, requestId);
      return record ? toUpload(record) : undefined;
    },
  };
}
