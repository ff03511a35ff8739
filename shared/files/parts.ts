import { invalidValue, rateLimited, requestTooLarge, toServiceError, unsupportedMediaType } from "#errors";
import { sleep } from "#platform/clock";
import { detect, headBytes, mediaType, unsupportedFile } from "./media-types.ts";
import {
  newRecord,
  partsPendingMs,
  type StoredUpload,
  statusAt,
  type UploadRequest,
  uploadEnded,
  uploadKey,
} from "./records.ts";
import { completeTimeoutMs, type Part } from "./storage.ts";
import { partsOf, type Upload, type UploadDeps } from "./upload-view.ts";

const limitBytes = 200 * 1024 * 1024;
const partSize = 16 * 1024 * 1024;
/** An upload can still be completed for ten minutes after its links have expired. */
const linkLifetimeMs = partsPendingMs - 600_000;
const pollMs = 200;
/** Slots are taken until their upload is completed, deleted, or expired. */
const slots = { key: 20, account: 100 } as const;

/** Uploads whose parts callers send to storage themselves. */
export function createParts({ records, storage, lifecycle, toUpload, clock }: UploadDeps) {
  /** Starts an upload of up to 200 MB. Throws 400 `bytes`, 402, 403, 413, 415 `mime`, 429, 503. */
  async function start({ bytes, mime, ...request }: UploadRequest & { bytes: number; mime: string }): Promise<Upload> {
    if (!Number.isSafeInteger(bytes) || bytes < 1)
      throw invalidValue("bytes", "bytes must be the size of the file, at least 1.");
    if (bytes > limitBytes) throw requestTooLarge(limitBytes, "bytes");
    const type = mediaType(mime);
    if (!type) throw unsupportedMediaType(`mime: '${mime}' is not an accepted type.`, "mime");
    // Checked before money is held, so that 429 takes precedence over 402.
    await freeSlots(request.account, request.keyId);
    const now = clock.now();
    const held = await lifecycle.hold(request, bytes, now + partsPendingMs);
    const multipart = { partSize, linksExpireAt: new Date(now + linkLifetimeMs) };
    const pending = newRecord(request, { now, pendingMs: partsPendingMs, bytes, held });
    const record = await insertInSlot({ ...pending, ...type, multipart });
    try {
      const uploadId = await storage.multipart.create(uploadKey(record._id), type.mime);
      const started = await records.update(record._id, {
        announced: true,
        multipart: { ...record.multipart, uploadId },
      });
      if (!started) throw uploadEnded(record, "expired");
      return await toUpload(started);
    } catch (error) {
      await lifecycle.fail(record, { status: "failed", error: "no_capacity" });
      throw error;
    }
  }

  async function freeSlots(account: string, keyId: string) {
    const taken = await records.takenSlots(account);
    const ofKey = taken.filter(({ key }) => key === keyId);
    return {
      slot: anyFree("This API key", slots.key, new Set(ofKey.map(({ slot }) => slot))),
      accountSlot: anyFree("This account", slots.account, new Set(taken.map(({ accountSlot }) => accountSlot))),
    };
  }

  /** If the insert fails, releases the hold. */
  async function insertInSlot<R extends StoredUpload & { multipart: object }>(record: R) {
    try {
      for (;;) {
        const free = await freeSlots(record.account, record.key);
        const withSlots = { ...record, multipart: { ...record.multipart, ...free } };
        if (await records.insertInSlot(withSlots)) return withSlots;
      }
    } catch (error) {
      // The caller does not wait for the release.
      void lifecycle.fail(record, { status: "failed", error: toServiceError(error).code });
      throw error;
    }
  }

  /** Idempotent. Throws 400 that names missing parts (the upload stays pending), 404, 410, 415, 503. */
  async function complete(account: string, id: string): Promise<Upload> {
    const record = await records.findOwned(account, id);
    const status = statusAt(record, clock.now());
    if (status === "active") return toUpload(record);
    if (status !== "pending") throw uploadEnded(record, status);
    await assemble(record);
    const object = await findObject(id);
    if (!object) {
      const current = await records.findOwned(account, id);
      // Storage has neither parts nor a file, so the upload was ended here or in storage.
      return current.status === "active" ? toUpload(current) : abandon(record, "upload_deleted");
    }
    if (object.size !== record.bytes)
      return abandon(record, "invalid_value", invalidValue("bytes", `bytes: the file has ${object.size} bytes.`));
    const type = await detect(object.head);
    if (!type) return abandon(record, "unsupported_media_type", unsupportedFile("parts"));
    const active = await lifecycle.activate(record, type, record.bytes);
    return active ? toUpload(active) : abandon(record, "upload_expired");
  }

  /** Checks the parts that storage lists and has storage join them. Does nothing if they have already been joined. */
  async function assemble({ _id: id, bytes, multipart }: StoredUpload): Promise<void> {
    const { uploadId } = multipart ?? {};
    if (!multipart || !uploadId) throw new Error(`${id} has no parts`);
    const key = uploadKey(id);
    const sent = await storage.multipart.parts(key, uploadId);
    if (!sent) return;
    const parts: Part[] = [];
    const faults: string[] = [];
    for (const { partNumber, bytes: size } of partsOf(bytes, multipart.partSize)) {
      const part = sent.get(partNumber);
      if (!part) faults.push(`part ${partNumber} is missing`);
      else if (part.bytes !== size) faults.push(`part ${partNumber} has ${part.bytes} bytes instead of ${size}`);
      else parts.push(part);
    }
    if (faults.length > 0) throw invalidValue("parts", `The upload is not complete: ${faults.join(", ")}.`);
    const completingUntil = new Date(clock.now() + completeTimeoutMs);
    if (!(await records.update(id, { multipart: { ...multipart, completingUntil } }))) return;
    const result = await storage.multipart.complete(key, uploadId, parts);
    if (result === "changed")
      throw invalidValue("parts", "A part was sent again in the meantime. Complete the upload again.");
  }

  /**
   * Returns the size and first bytes of the file. Polls while another completion runs, during which storage may have
   * neither file nor parts.
   */
  async function findObject(id: string) {
    for (;;) {
      const object = await storage.head(uploadKey(id), headBytes);
      if (object) return object;
      const current = await records.find(id);
      const until = current?.multipart?.completingUntil?.getTime() ?? 0;
      if (current?.status !== "pending" || until <= clock.now()) return undefined;
      await sleep(clock, pollMs);
    }
  }

  /** Fails the upload. Throws `error`, or 410 for an upload that its owner ended or that expired. */
  async function abandon(record: StoredUpload, code: string, error?: Error): Promise<never> {
    await lifecycle.fail(record, { status: "failed", error: code });
    if (error) throw error;
    const current = (await records.find(record._id)) ?? record;
    throw uploadEnded(record, statusAt(current, clock.now()));
  }

  return { start, complete };
}

/** Chosen at random, so that concurrent requests rarely collide. Throws 429 if there is none. */
function anyFree(owner: string, count: number, taken: ReadonlySet<number | null | undefined>): number {
  const free = Array.from({ length: count }, (_, slot) => slot).filter((slot) => !taken.has(slot));
  const slot = free[Math.floor(Math.random() * free.length)];
  if (slot === undefined)
    throw rateLimited(
      `${owner} has ${count} unfinished uploads in parts, which is the maximum. Complete or delete some.`,
      Number.POSITIVE_INFINITY,
    );
  return slot;
}
