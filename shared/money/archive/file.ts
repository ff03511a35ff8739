import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { zstdCompress, zstdDecompress } from "node:zlib";
import { mongo } from "mongoose";
import type { StoredEntry } from "../ledger.ts";

const toZstd = promisify(zstdCompress);
const fromZstd = promisify(zstdDecompress);
const { EJSON } = mongo.BSON;

/** Preserves BSON types, so that a Double with an integral value stays a Double. */
export const exactTypes = { promoteValues: false, useBigInt64: false } as const;

/** The values that a file is verified against. */
export interface Contents {
  readonly entries: number;
  /** The sum of the entries' amounts. */
  readonly amount: bigint;
  /** The size of the compressed file. */
  readonly bytes: number;
  readonly sha256: string;
  /** The times of the first and the last entry. */
  readonly from: Date;
  readonly to: Date;
}

/** An entry of a file: its line, and the fields that identify it. */
export interface ArchivedLine {
  readonly id: string;
  readonly account: string;
  readonly text: string;
}

/** An entry as read with `exactTypes`. */
export type ExactEntry = Pick<StoredEntry, "_id" | "account" | "createdAt"> & {
  readonly lease?: string;
  readonly amount: mongo.Long;
};

/**
 * JSON lines in MongoDB's canonical Extended JSON, compressed to one zstd frame. The format is exact for every type,
 * and identical entries produce identical lines.
 */
export function createArchiveFile() {
  const lines: Buffer[] = [];
  let rawBytes = 0;
  let amount = 0n;
  let from: Date | undefined;
  let to = new Date(0);

  return {
    add(entry: ExactEntry): void {
      const line = Buffer.from(`${EJSON.stringify(entry, { relaxed: false })}\n`);
      lines.push(line);
      rawBytes += line.length;
      amount += entry.amount.toBigInt();
      from ??= entry.createdAt;
      to = entry.createdAt;
    },
    size: () => ({ entries: lines.length, rawBytes }),
    async close(): Promise<{ file: Buffer; contents: Contents }> {
      const file = await toZstd(Buffer.concat(lines, rawBytes));
      const contents = { entries: lines.length, amount, bytes: file.length, sha256: sha256Of(file) };
      return { file, contents: { ...contents, from: from ?? to, to } };
    },
  };
}

/** Throws if the file differs from what was written. */
export async function readArchiveFile(part: string, file: Buffer, written: Contents): Promise<ArchivedLine[]> {
  if (sha256Of(file) !== written.sha256) throw new Error(`the archive ${part} is damaged: its SHA-256 differs`);
  const lines: ArchivedLine[] = [];
  let amount = 0n;
  for (const text of (await fromZstd(file)).toString("utf8").split("\n")) {
    if (text === "") continue;
    const line = JSON.parse(text) as { _id: string; account: string; amount: { $numberLong: string } };
    lines.push({ id: line._id, account: line.account, text });
    amount += BigInt(line.amount.$numberLong);
  }
  if (lines.length !== written.entries || amount !== written.amount)
    throw new Error(`the archive ${part} has ${lines.length} entries over ${amount}, not what was written`);
  return lines;
}

export const entryOf = ({ text }: ArchivedLine) => EJSON.parse(text, { relaxed: false }) as StoredEntry;

const sha256Of = (file: Buffer) => createHash("sha256").update(file).digest("hex");
