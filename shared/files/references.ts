import { invalidValue, uploadExpired, uploadNotFound } from "#errors";
import type { UploadRef } from "#formats";
import type { MediaType } from "./media-types.ts";
import { gone, type StoredUpload, statusAt } from "./records.ts";
import { uploadKey } from "./show.ts";
import type { InputFile, Uploads } from "./types.ts";
import type { UploadDeps } from "./upload-deps.ts";

/** Makers fetch what a queued job names only when they begin it. */
const linkMs = 3_600_000;

interface Usable extends MediaType {
  readonly id: string;
  readonly param: string;
  readonly bytes: number;
  readonly expiresAt: number;
}

/** Uploads that a request names, as its input. */
export function createReferences(deps: UploadDeps): Pick<Uploads, "check" | "resolve"> {
  const { records, storage, links, makersReachLinks, clock } = deps;

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

  async function read({ id, param, bytes }: Usable, limitBytes: number, signal: AbortSignal): Promise<Buffer> {
    if (bytes > limitBytes)
      throw invalidValue(param, `${param}: the upload '${id}' has ${bytes} bytes; the model takes ${limitBytes}.`);
    const opened = await storage.open(uploadKey(id), undefined, signal);
    if (!opened) throw uploadExpired(id, param);
    return Buffer.concat(await Array.fromAsync(opened.body), bytes);
  }

  async function resolve(account: string, refs: readonly UploadRef[], signal: AbortSignal) {
    const files = [...(await check(account, refs)).values()].map(async (file): Promise<[string, InputFile]> => {
      const { id, param, mime, kind, bytes, expiresAt } = file;
      const now = clock.now();
      const life = { from: now, until: Math.min(now + linkMs, expiresAt) };
      const link = makersReachLinks ? await links.get(uploadKey(id), mime, life) : undefined;
      return [id, { id, param, mime, kind, bytes, link, read: (limitBytes) => read(file, limitBytes, signal) }];
    });
    return new Map(await Promise.all(files));
  }

  return { check, resolve };
}
