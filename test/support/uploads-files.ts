import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

export const mebi = 1024 * 1024;
export const uploadLimit = 95 * mebi;

/** The beginning of a file of this length; the rest may be anything. */
export const heads = {
  png(bytes: number) {
    const data = Buffer.alloc(4);
    data.writeUInt32BE(Math.max(0, bytes - 57));
    const header = "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489";
    return Buffer.concat([Buffer.from(header, "hex"), data, Buffer.from("IDAT")]);
  },
  mp4(bytes: number) {
    const data = Buffer.alloc(8);
    data.writeUInt32BE(Math.max(8, bytes - 24));
    data.write("mdat", 4);
    return Buffer.concat([Buffer.from("0000001866747970", "hex"), Buffer.from("isom\0\0\x02\0isommp42"), data]);
  },
  wav(bytes: number) {
    const header = Buffer.alloc(44);
    header.write("RIFF", 0);
    header.writeUInt32LE(bytes - 8, 4);
    header.write("WAVEfmt ", 8);
    header.writeUInt32LE(16, 16);
    header.writeUInt16LE(1, 20);
    header.writeUInt16LE(1, 22);
    header.writeUInt32LE(8000, 24);
    header.writeUInt32LE(16000, 28);
    header.writeUInt16LE(2, 32);
    header.writeUInt16LE(16, 34);
    header.write("data", 36);
    header.writeUInt32LE(bytes - 44, 40);
    return header;
  },
} as const;
export type Kind = keyof typeof heads;

export function fileOf(kind: Kind, bytes: number): Buffer<ArrayBuffer> {
  const file = Buffer.alloc(bytes);
  heads[kind](bytes).copy(file);
  return file;
}

const zeros = Buffer.alloc(64 * 1024);

/** The same file in chunks. */
export function* piecesOf(kind: Kind, bytes: number): Generator<Buffer> {
  const head = heads[kind](bytes);
  yield head;
  for (let remaining = bytes - head.length; remaining > 0; remaining -= zeros.length)
    yield zeros.subarray(0, remaining);
}

export const boundary = "----a-boundary-of-the-tests";

/** The head of one part of a form. */
export const partHead = (name: string, more = '; filename="file.bin"\r\ncontent-type: application/octet-stream') =>
  Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\n`);
export const formEnd = Buffer.from(`\r\n--${boundary}--\r\n`);
export const formType = { "content-type": `multipart/form-data; boundary=${boundary}` };

export function* formOf(file: Iterable<Buffer>): Generator<Buffer> {
  yield partHead("file");
  yield* file;
  yield formEnd;
}

/** A file on disk with zeros after its head, which is removed with the test. */
export async function diskFile(kind: Kind, bytes: number): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "uploads-test-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, `file.${kind}`);
  const file = await open(path, "w");
  await file.write(heads[kind](bytes));
  await file.truncate(bytes);
  await file.close();
  return path;
}
