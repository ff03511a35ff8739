import { createHash, randomBytes } from "node:crypto";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const pool = { bytes: Buffer.alloc(0), at: 0 };

/** Returns uniformly random base62. Random bytes are read in blocks, so that one system call serves many ids. */
export function randomBase62(length: number): string {
  let out = "";
  while (out.length < length) {
    if (pool.at >= pool.bytes.length) {
      pool.bytes = randomBytes(4096);
      pool.at = 0;
    }
    const byte = pool.bytes[pool.at++] as number;
    if (byte < 248) out += alphabet[byte % 62];
  }
  return out;
}

/** The id of a document that an account names. */
export const hashedId = (account: string, name: string): string =>
  createHash("sha256")
    .update(JSON.stringify([account, name]))
    .digest("base64url");

/** The same base62 for the same parts: ids of documents that are created once, however often. At most 42 characters. */
export function hashedBase62(length: number, ...parts: readonly string[]): string {
  let rest = BigInt(`0x${createHash("sha256").update(JSON.stringify(parts)).digest("hex")}`);
  let out = "";
  for (; out.length < length; rest /= 62n) out += alphabet[Number(rest % 62n)];
  return out;
}

/** `req_...` identifies the job, the hold and the ledger entry of one call. Safe as a map key and as a job id. */
export const newRequestId = () => `req_${randomBase62(24)}`;
export const newId = (prefix: "acct" | "key" | "api" | "wrk" | "aud") => `${prefix}_${randomBase62(20)}`;
/** Access to uploads is checked by account. Access to generated files is not, so their ids have 238 bits. */
export const newUploadId = () => `upl_${randomBase62(24)}`;
export const newFileId = () => `file_${randomBase62(40)}`;
export const newBatchFileId = () => `file-${randomBase62(24)}`;
/** The same id for the same parts, so that a file that is written again is not a second one. */
export const hashedBatchFileId = (...parts: readonly string[]) => `file-${hashedBase62(24, ...parts)}`;
