import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { Request, Response } from "express";

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

/** A file that is served from memory: one that is streamed from the disk would stay open until a slow client has read it. */
export interface PageFile {
  readonly type: string;
  readonly bytes: Buffer;
  readonly etag: string;
  /** Compressed once, at the first request that accepts the encoding. */
  readonly encoded: Map<Encoding, Promise<Buffer>>;
}

export async function readPageFile(path: string): Promise<PageFile> {
  const bytes = await readFile(path);
  const etag = `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 27)}"`;
  return { type: types[extname(path)] ?? "application/octet-stream", bytes, etag, encoded: new Map() };
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
  res.end(req.method === "HEAD" ? undefined : bytes);
}

const accepted = (req: Request): Encoding | undefined =>
  (["br", "gzip"] as const).find((encoding) => req.acceptsEncodings(encoding) === encoding);

function encodedAs({ bytes, encoded }: PageFile, encoding: Encoding): Promise<Buffer> {
  let work = encoded.get(encoding);
  if (!work) encoded.set(encoding, (work = encodings[encoding](bytes)));
  return work;
}

function brotli(bytes: Buffer): Promise<Buffer> {
  return promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } });
}
