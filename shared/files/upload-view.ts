import type { Clock } from "#platform/clock";
import type { Links } from "./links.ts";
import { type StoredUpload, statusAt } from "./records.ts";
import type { Parts, Upload } from "./types.ts";

/** Objects of uploads. */
export const uploadKey = (id: string) => `uploads/${id}`;

/** As long as a link to an active upload lives, or the rest of the upload's life. */
const linkMs = 15 * 60_000;

/** How `bytes` are cut: the last part is smaller, a small file is one. */
export const partsOf = (bytes: number, partSize: number): readonly { partNumber: number; bytes: number }[] =>
  Array.from({ length: Math.ceil(bytes / partSize) }, (_, at) => ({
    partNumber: at + 1,
    bytes: Math.min(partSize, bytes - at * partSize),
  }));

/** An upload as its owner sees it now. */
export function createShow({ links, clock }: { links: Links; clock: Clock }) {
  async function multipart(record: StoredUpload): Promise<Parts | undefined> {
    const { uploadId, partSize, linksExpireAt } = record.multipart ?? {};
    if (!uploadId || !partSize || !linksExpireAt) return undefined;
    const key = uploadKey(record._id);
    // Signed for the time of the start: the same addresses whenever they are asked for.
    const life = { from: record.createdAt.getTime(), until: linksExpireAt.getTime() };
    const parts = partsOf(record.bytes, partSize).map(async (part) => ({
      ...part,
      url: await links.part(key, { uploadId, ...part }, life),
    }));
    return { partSize, linksExpireAt: linksExpireAt.getTime(), parts: await Promise.all(parts) };
  }

  return async function show(record: StoredUpload): Promise<Upload> {
    const { _id: id, account, requestId, mime, kind, bytes, cost, activatedAt } = record;
    const now = clock.now();
    const status = statusAt(record, now);
    if (!mime || !kind) throw new Error(`the type of ${id} is not known`);
    const expiresAt = record.expiresAt.getTime();
    const until = Math.min(now + linkMs, expiresAt);
    const parts = status === "pending" ? await multipart(record) : undefined;
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
      ...(parts && { multipart: parts }),
    };
  };
}
