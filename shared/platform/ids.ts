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

/** `req_...` identifies the job, the hold and the ledger entry of one call. Safe as a map key and as a job id. */
export const newRequestId = () => `req_${randomBase62(24)}`;
export const newId = (prefix: "acct" | "key" | "api" | "wrk" | "aud") => `${prefix}_${randomBase62(20)}`;
/** Access to uploads is checked by account. Access to generated files is not, so their ids have 238 bits. */
export const newUploadId = () => `upl_${randomBase62(24)}`;
export const newFileId = () => `file_${randomBase62(40)}`;
