import { invalidValue, noCapacity, uploadExpired, uploadNotFound } from "#errors";
import type { UploadRef } from "#formats";
import type { ByteShare } from "#platform/byte-budget";
import type { MediaType } from "./media-types.ts";
import { gone, type StoredUpload, statusAt } from "./records.ts";
import type { InputFile, Uploads } from "./types.ts";
import type { UploadDeps } from "./upload-deps.ts";
import { uploadKey } from "./upload-view.ts";

/** Providers fetch what a queued job names only when they begin it. */
const linkMs = 3_600_000;

/** In base64 it is held by the request, by the body written from it and by the copy that goes to the socket: 4/3 each. */
const base64Copies = 4;
const repeatAfterSeconds = 2;

interface Usable extends MediaType {
  readonly id: string;
  readonly param: string;
  readonly bytes: number;
  readonly expiresAt: number;
}

/** Uploads that a request names, as its input. */
export function createReferences(deps: UploadDeps): Pick<Uploads, "check" | "resolve"> {
  const { records, storage, links, providersReachLinks, clock } = deps;

  /** Throws for the first that cannot be used, naming its field. */
  function usable(account: string, ref: UploadRef, record: StoredUpload | undefined): Usable {
    const { id, param, kind: wanted } = ref;
    if (record?.account !== account || !record.announced) throw uploadNotFound(id, param);
    const status = statusAt(record, clock.now());
    if (status === "pending") throw invalidValue(param, `${param}: the upload '${id}' is not complete.`);
    if (status !== "active") throw gone(record, status, param);
    const { mime, kind, bytes, expiresAt } = record;
    if (!mime || !kind) throw new Error(`the type of ${id} is not known`);
    if (wanted !== undefined && kind !== wanted)
      throw invalidValue(param, `${param}: the upload '${id}' is of kind ${kind}, not ${wanted}.`);
    return { id, param, mime, kind, bytes, expiresAt: expiresAt.getTime() };
  }

  /** Each once, under the first field that names it. */
  async function check(account: string, refs: readonly UploadRef[]): Promise<Map<string, Usable>> {
    const found = refs.length === 0 ? [] : await records.all([...new Set(refs.map(({ id }) => id))]);
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

  /** Reads a file within the memory that there is for it. */
  function reading(file: Usable, signal: AbortSignal, memory: ByteShare | undefined) {
    const { id, param, bytes } = file;
    let takenBytes = 0;
    const give = (most: number) => {
      const given = Math.min(most, takenBytes);
      takenBytes -= given;
      memory?.give(given);
    };
    async function within<T>(limitBytes: number, neededBytes: number, use: (content: Buffer) => T): Promise<T> {
      if (bytes > limitBytes)
        throw invalidValue(param, `${param}: the upload '${id}' has ${bytes} bytes; the model takes ${limitBytes}.`);
      signal.throwIfAborted();
      if (memory?.take(neededBytes) === false)
        throw noCapacity(`${param}: there is no memory for so large an upload right now.`, repeatAfterSeconds);
      takenBytes += neededBytes;
      try {
        return use(await read(file, signal));
      } catch (error) {
        give(neededBytes);
        throw error;
      }
    }
    return {
      read: (limitBytes: number) => within(limitBytes, bytes, (content) => content),
      base64: (limitBytes: number, times = 1) =>
        within(limitBytes, base64Copies * times * bytes, (content) => content.toString("base64")),
      release: () => give(takenBytes),
    };
  }

  async function resolve(account: string, refs: readonly UploadRef[], signal: AbortSignal, memory?: ByteShare) {
    const files = [...(await check(account, refs)).values()].map(async (file): Promise<[string, InputFile]> => {
      const { id, param, mime, kind, bytes, expiresAt } = file;
      const now = clock.now();
      const life = { from: now, until: Math.min(now + linkMs, expiresAt) };
      const link = providersReachLinks ? await links.get(uploadKey(id), mime, life) : undefined;
      return [id, { id, param, mime, kind, bytes, link, ...reading(file, signal, memory) }];
    });
    return new Map(await Promise.all(files));
  }

  return { check, resolve };
}
