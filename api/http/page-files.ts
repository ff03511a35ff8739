import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { Request, Response } from "express";
import { slicesOf, writeSlices } from "./answer.ts";

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".webp": "image/webp",
  ".woff2": "font/woff2",
  ".txt": "text/plain; charset=utf-8",
};
const compressible = /^(text|application\/json|image\/svg)/;
const encodings = { br: brotli, gzip: promisify(gzip) } as const;
type Encoding = keyof typeof encodings;

/**
 * A file or document that is the same for everybody, in memory: one copy serves any number of clients, while a file streamed
 * from the disk would stay open until a slow client has read it.
 */
export interface PageFile {
  readonly type: string;
  readonly bytes: Buffer;
  readonly etag: string;
  /** Compressed once, at the first request that accepts the encoding. */
  readonly encoded: Map<Encoding, Promise<Buffer>>;
}

export const readPageFile = async (path: string): Promise<PageFile> => pageFile(extname(path), await readFile(path));

/** `extension` has its dot. */
export function pageFile(extension: string, bytes: Buffer): PageFile {
  const etag = `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 27)}"`;
  return { type: types[extension] ?? "application/octet-stream", bytes, etag, encoded: new Map() };
}

/** Sends the file compressed if the client accepts that, or 304 if it has the file. */
export async function sendPageFile(req: Request, res: Response, file: PageFile): Promise<void> {
  const encoding = compressible.test(file.type) ? accepted(req) : undefined;
  const etag = encoding ? file.etag.replace(/"$/, `-${encoding}"`) : file.etag;
  res.vary("accept-encoding").set({ etag, "content-type": file.type });
  if (
    req
      .get("if-none-match")
      ?.split(",")
      .some((tag) => tag.trim().replace(/^W\//, "") === etag)
  )
    return void res.status(304).end();
  const bytes = encoding ? await encodedAs(file, encoding) : file.bytes;
  if (encoding) res.set("content-encoding", encoding);
  res.set("content-length", String(bytes.length));
  if (req.method === "HEAD") return void res.end();
  writeSlices(res, slicesOf([bytes]));
}

const accepted = (req: Request): Encoding | undefined =>
  (["br", "gzip"] as const).find((encoding) => req.acceptsEncodings(encoding) === encoding);

function encodedAs({ bytes, encoded }: PageFile, encoding: Encoding): Promise<Buffer> {
  let work = encoded.get(encoding);
  if (!work) encoded.set(encoding, (work = encodings[encoding](bytes)));
  return work;
}

/** The highest quality takes 15 times as long, 4 s for the largest file, and saves another 8 %. */
const brotliQuality = 9;

function brotli(bytes: Buffer): Promise<Buffer> {
  const { BROTLI_PARAM_QUALITY: quality, BROTLI_PARAM_SIZE_HINT: size } = constants;
  return promisify(brotliCompress)(bytes, { params: { [quality]: brotliQuality, [size]: bytes.length } });
}
