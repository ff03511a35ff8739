import { unsupportedMediaType } from "#errors";
import { newUploadId } from "#platform/ids";
import { type StoredUpload, settlingMs } from "./records.ts";
import type { UploadAsk } from "./types.ts";
import type { UploadDeps } from "./upload-deps.ts";

const dayMs = 24 * 3_600_000;

/** A record of an upload that begins now; `pendingMs` from now on nothing more may come. */
export function newRecord(
  { account, keyId, requestId, buybackToken }: UploadAsk,
  { now, pendingMs, bytes, held }: { now: number; pendingMs: number; bytes: number; held: bigint },
): StoredUpload {
  return {
    _id: newUploadId(),
    account,
    key: keyId,
    ...(buybackToken != null && { buybackToken }),
    requestId,
    status: "pending",
    announced: false,
    bytes,
    held,
    cost: held,
    createdAt: new Date(now),
    expiresAt: new Date(now + dayMs),
    pendingUntil: new Date(now + pendingMs),
    dueAt: new Date(now + pendingMs + settlingMs),
  };
}

/** Its money is held: if it cannot be written down, nobody would let go of that. */
export async function insert({ records, outcome, lives }: UploadDeps, record: StoredUpload): Promise<void> {
  try {
    await records.insert(record);
  } catch (error) {
    // The caller does not wait for it.
    void outcome.fail(record, { status: "failed", error: "no_capacity" }, lives);
    throw error;
  }
}

export const unsupportedFile = (param?: string) =>
  unsupportedMediaType("The file is no image, video or audio of a type that is accepted.", param);
