import { invalidValue, rateLimited, requestTooLarge, toServiceError, unsupportedMediaType } from "#errors";
import { sleep } from "#platform/clock";
import { detect, headBytes, mediaType } from "./media-types.ts";
import { newRecord, unsupportedFile } from "./new-upload.ts";
import { gone, type StoredUpload, statusAt } from "./records.ts";
import { completeMs, type Part } from "./storage.ts";
import type { Upload, UploadAsk, Uploads } from "./types.ts";
import type { UploadDeps } from "./upload-deps.ts";
import { partsOf, uploadKey } from "./upload-view.ts";

const limitBytes = 200 * 1024 * 1024;
const partSize = 16 * 1024 * 1024;
const linksMs = 3_600_000;
/** What was sent in time may be completed for so long after. */
const completionMs = 600_000;
const againMs = 200;
/** Of one API key. They count until they are completed, deleted, or removed some minutes after their time. */
const slots = Array.from({ length: 20 }, (_, at) => at);

/** Uploads that callers send to storage in parts. */
export function createParts(deps: UploadDeps): Pick<Uploads, "start" | "complete"> {
  const { records, charges, storage, outcome, lives, show, clock } = deps;

  async function start({ bytes, mime, ...ask }: UploadAsk & { bytes: number; mime: string }): Promise<Upload> {
    if (!Number.isSafeInteger(bytes) || bytes < 1)
      throw invalidValue("bytes", "bytes must be the size of the file, at least 1.");
    if (bytes > limitBytes) throw requestTooLarge(limitBytes, "bytes");
    const type = mediaType(mime);
    if (!type) throw unsupportedMediaType(`mime: '${mime}' is no type that is accepted.`, "mime");
    // Before money is held: whoever has too many is told so first.
    await freeSlot(ask.keyId);
    const now = clock.now();
    const pendingMs = linksMs + completionMs;
    const held = await charges.hold(ask, bytes, now + pendingMs);
    const multipart = { partSize, linksExpireAt: new Date(now + linksMs) };
    const record = await insertInSlot({ ...newRecord(ask, { now, pendingMs, bytes, held }), ...type, multipart });
    try {
      const uploadId = await storage.multipart.create(uploadKey(record._id), type.mime);
      const parts = { ...record.multipart, uploadId };
      const told = await records.update(record._id, { announced: true, multipart: parts });
      if (!told) throw gone(record, "expired");
      return await show(told);
    } catch (error) {
      await outcome.fail(record, { status: "failed", error: "no_capacity" }, lives);
      throw error;
    }
  }

  async function freeSlot(keyId: string): Promise<number> {
    const taken = await records.slots(keyId);
    const free = slots.filter((slot) => !taken.has(slot));
    // Any of them: those who ask at the same time seldom ask for the same one.
    const slot = free[Math.floor(Math.random() * free.length)];
    if (slot === undefined)
      throw rateLimited(
        `This API key has ${slots.length} unfinished uploads in parts, the most there may be. Complete or delete some.`,
        Number.POSITIVE_INFINITY,
      );
    return slot;
  }

  /** Its money is held: if it cannot be recorded, release that. */
  async function insertInSlot<R extends StoredUpload & { multipart: object }>(record: R) {
    try {
      for (;;) {
        const slot = await freeSlot(record.key);
        const placed = { ...record, multipart: { ...record.multipart, slot } };
        if (await records.insertInSlot(placed)) return placed;
      }
    } catch (error) {
      // The caller does not wait for it.
      void outcome.fail(record, { status: "failed", error: toServiceError(error).code }, lives);
      throw error;
    }
  }

  async function complete(account: string, id: string): Promise<Upload> {
    const record = await records.own(account, id);
    const status = statusAt(record, clock.now());
    if (status === "active") return show(record);
    if (status !== "pending") throw gone(record, status);
    await assemble(record);
    const found = await look(id);
    if (!found) {
      const standing = await records.own(account, id);
      // Neither parts nor a file: somebody has ended it, if not here then in storage.
      return standing.status === "active" ? show(standing) : abandon(record, "upload_deleted");
    }
    if (found.size !== record.bytes)
      return abandon(record, "invalid_value", invalidValue("bytes", `bytes: the file has ${found.size} bytes.`));
    const type = await detect(found.head);
    if (!type) return abandon(record, "unsupported_media_type", unsupportedFile("parts"));
    const active = await outcome.succeed(record, type, record.bytes);
    return active ? show(active) : abandon(record, "upload_expired");
  }

  /** The truth is what storage lists. Parts that were assembled before are passed over. */
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
    const completingUntil = new Date(clock.now() + completeMs);
    if (!(await records.update(id, { multipart: { ...multipart, completingUntil } }))) return;
    const done = await storage.multipart.complete(key, uploadId, parts);
    if (done === "changed") throw invalidValue("parts", "A part was sent again meanwhile. Complete the upload again.");
  }

  /** The file. While another completion is under way storage may have neither it nor the parts: then it is waited for. */
  async function look(id: string) {
    for (;;) {
      const found = await storage.head(uploadKey(id), headBytes);
      if (found) return found;
      const standing = await records.read(id);
      const until = standing?.multipart?.completingUntil?.getTime() ?? 0;
      if (standing?.status !== "pending" || until <= clock.now()) return undefined;
      await sleep(clock, againMs);
    }
  }

  /** It cannot become active any more. If its owner or the time ended it, that is the answer. */
  async function abandon(record: StoredUpload, code: string, error?: Error): Promise<never> {
    await outcome.fail(record, { status: "failed", error: code }, lives);
    if (error) throw error;
    const standing = (await records.read(record._id)) ?? record;
    const status = statusAt(standing, clock.now());
    throw gone(record, status === "deleted" ? "deleted" : "expired");
  }

  return { start, complete };
}
