import { detect, type MediaType, unsupportedFile } from "./media-types.ts";
import { fileLifetimeMs, newRecord, type StoredUpload, type UploadRequest, uploadKey } from "./records.ts";
import type { UploadDeps } from "./upload-view.ts";

interface TemporaryFile {
  readonly bytes: number;
  /** Its first bytes. */
  readonly head: Buffer;
  readonly body: AsyncIterable<Buffer>;
}

/**
 * Files of one call each: uploads that cost nothing and that no caller knows of. They are deleted when their call has ended,
 * or by expiry if the process dies.
 */
export const createTemporary = ({ records, storage, lifecycle, clock }: UploadDeps) => ({
  /** Throws 415, 503. */
  async store(request: UploadRequest, { bytes, head, body }: TemporaryFile): Promise<MediaType & { id: string }> {
    const type = await detect(head);
    if (!type) throw unsupportedFile("file");
    const now = clock.now();
    // Active before its object exists: there is no charge to settle, and expiry knows of the object.
    const record: StoredUpload = {
      ...newRecord(request, { now, pendingMs: 0, bytes, held: 0n }),
      ...type,
      status: "active",
      activatedAt: new Date(now),
      dueAt: new Date(now + fileLifetimeMs),
    };
    await records.insert(record);
    try {
      await storage.send({ key: uploadKey(record._id), contentType: type.mime, bytes, chunks: body });
    } catch (error) {
      // Storage may still create the object, so expiry deletes it with the record.
      await records.remove(record._id);
      throw error;
    }
    return { id: record._id, ...type };
  },
  /** What a rejection leaves behind is deleted by expiry. */
  async delete(id: string): Promise<void> {
    if (await records.remove(id)) await lifecycle.expiry.cleanUp([id]);
  },
});
