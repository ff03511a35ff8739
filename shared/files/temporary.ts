import type { MediaType } from "./media-types.ts";
import { fileLifetimeMs, newRecord, type StoredUpload, type UploadRequest, uploadKey } from "./records.ts";
import type { UploadDeps } from "./upload-view.ts";

export interface TemporaryFile {
  readonly type: MediaType;
  readonly bytes: number;
  readonly body: AsyncIterable<Buffer>;
}

/** Sizes by id, of uploads and of files that are not stored yet. */
export type FileSizes = ReadonlyMap<string, Pick<MediaType, "kind"> & Pick<TemporaryFile, "bytes">>;

/**
 * Files that belong to one call each: free uploads whose ids no caller receives. They are deleted when their call has
 * ended, or by expiry if the process dies.
 */
export const createTemporary = ({ records, storage, lifecycle, clock }: UploadDeps) => {
  /** If this rejects, expiry deletes the remaining files. */
  async function remove(ids: readonly string[]): Promise<void> {
    const removed: string[] = [];
    for (const id of ids) if (await records.remove(id)) removed.push(id);
    await lifecycle.expiry.cleanUp(removed);
  }

  async function storeOne(request: UploadRequest, { type, bytes, body }: TemporaryFile): Promise<string> {
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
    return record._id;
  }

  return {
    /** Returns the ids of the files in order. Throws 503 and stores none of them if one fails. */
    async store(request: UploadRequest, files: readonly TemporaryFile[]): Promise<readonly string[]> {
      const ids: string[] = [];
      try {
        // Records need different request ids.
        for (const file of files)
          ids.push(await storeOne({ ...request, requestId: `${request.requestId}.${ids.length}` }, file));
        return ids;
      } catch (error) {
        await remove(ids);
        throw error;
      }
    },
    delete: remove,
  };
};
