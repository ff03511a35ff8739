import type { Clock } from "#platform/clock";
import type { Links } from "./links.ts";
import { type StoredUpload, statusAt, uploadKey } from "./records.ts";
import type { MultipartLinks, Upload } from "./types.ts";

export type ToUpload = (record: StoredUpload) => Promise<Upload>;

/** A link to an active upload lives this long, or for the rest of the upload's life. */
const linkLifetimeMs = 15 * 60_000;

/** Every part has `partSize` bytes but the last, which is smaller. */
export const partsOf = (bytes: number, partSize: number): readonly { partNumber: number; bytes: number }[] =>
  Array.from({ length: Math.ceil(bytes / partSize) }, (_, at) => ({
    partNumber: at + 1,
    bytes: Math.min(partSize, bytes - at * partSize),
  }));

/** The current public view of an upload's record. */
export function createToUpload({ links, clock }: { links: Links; clock: Clock }): ToUpload {
  async function multipartLinks(record: StoredUpload): Promise<MultipartLinks | undefined> {
    const { uploadId, partSize, linksExpireAt } = record.multipart ?? {};
    if (!uploadId || !partSize || !linksExpireAt) return undefined;
    const key = uploadKey(record._id);
    // Signed as of the creation, so that every read returns the same links.
    const life = { from: record.createdAt.getTime(), until: linksExpireAt.getTime() };
    const parts = partsOf(record.bytes, partSize).map(async (part) => ({
      ...part,
      url: await links.part(key, { uploadId, ...part }, life),
    }));
    return { partSize, linksExpireAt: linksExpireAt.getTime(), parts: await Promise.all(parts) };
  }

  return async (record) => {
    const { _id: id, account, requestId, mime, kind, bytes, cost, activatedAt } = record;
    const now = clock.now();
    const status = statusAt(record, now);
    if (!mime || !kind) throw new Error(`the record of ${id} has no type`);
    const expiresAt = record.expiresAt.getTime();
    const until = Math.min(now + linkLifetimeMs, expiresAt);
    const multipart = status === "pending" ? await multipartLinks(record) : undefined;
    return {
      id,
      account,
      requestId,
      mime,
      kind,
      bytes,
      createdAt: record.createdAt.getTime(),
      expiresAt,
      status,
      costNanoUsd: activatedAt || status === "pending" ? cost : 0n,
      url: status === "active" ? await links.get(uploadKey(id), mime, { from: now, until }) : null,
      ...(multipart && { multipart }),
    };
  };
}
