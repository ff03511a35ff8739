import { pipeline } from "node:stream/promises";
import { type Request, type RequestHandler, type Response, Router } from "express";
import { fileExpired, noCapacity, notFound, ServiceError } from "#errors";
import type { Files, GeneratedFile } from "#files";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { isFresh, type Range, rangeOf } from "../http/conditional.ts";
import { methodNotAllowed } from "../http/errors.ts";
import { localsOf } from "../http/headers.ts";
import type { OpenCalls } from "../open-calls/index.ts";

export interface FileDeps {
  readonly files: Pick<Files, "generated">;
  readonly openCalls: Pick<OpenCalls, "arrive">;
  readonly clock: Clock;
  readonly log: Logger;
}

const lifeMs = 24 * 3_600_000;
const fileId = /^file_[0-9A-Za-z]{40}$/;

/** What a browser shows or plays. Anything else is only to be saved: a page of someone's making must not run here. */
const extensions: Readonly<Record<string, string>> = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/webp": "webp",
  "image/gif": "gif",
  "image/avif": "avif",
  "image/heic": "heic",
  "image/bmp": "bmp",
  "image/tiff": "tiff",
  "video/mp4": "mp4",
  "video/webm": "webm",
  "video/quicktime": "mov",
  "video/matroska": "mkv",
  "audio/mpeg": "mp3",
  "audio/wav": "wav",
  "audio/ogg": "ogg",
  "audio/opus": "opus",
  "audio/flac": "flac",
  "audio/aac": "aac",
  "audio/mp4": "m4a",
  "audio/x-m4a": "m4a",
  "audio/webm": "weba",
};

/** `/media/<id>`, mounted at `/media`: what models made. Its id is all that is needed to read a file. */
export function fileRoutes(deps: FileDeps): Router {
  const router = Router();
  router.get("/:id", serve(deps));
  router.all("/:id", methodNotAllowed("GET", "HEAD"));
  return router;
}

const serve =
  ({ files, openCalls, clock, log }: FileDeps): RequestHandler<{ id: string }> =>
  async (req, res) => {
    const { id } = req.params;
    const gone = new AbortController();
    res.once("close", () => gone.abort());
    const left = openCalls.arrive();
    try {
      const file = fileId.test(id) ? await files.generated.find(id) : undefined;
      if (!file) throw notFound("file");
      if (file === "expired") throw fileExpired();
      await send(req, res, file, clock.now(), (range) => files.generated.open(id, range, gone.signal));
    } catch (error) {
      if (gone.signal.aborted) return;
      if (!res.headersSent) throw error;
      // The answer cannot end well any more: without its end no client takes it for the whole file.
      log.warn({ err: error, requestId: localsOf(res).requestId, file: id }, "a file broke off");
      res.destroy();
    } finally {
      left();
    }
  };

type Found = GeneratedFile & { readonly etag: string };
type Open = (range: Range | undefined) => Promise<AsyncIterable<Buffer>>;

async function send(req: Request<{ id: string }>, res: Response, file: Found, now: number, open: Open) {
  const about = {
    etag: file.etag,
    "last-modified": new Date(file.expiresAt - lifeMs).toUTCString(),
    // No cache may outlive the file.
    "cache-control": `private, max-age=${Math.max(0, Math.floor((file.expiresAt - now) / 1000))}, immutable`,
  };
  res.set(about);
  if (isFresh(req, res)) return void res.status(304).end();
  const range = rangeOf(req, res, file.bytes);
  for (const name of Object.keys(about)) res.removeHeader(name);
  if (range === "unsatisfiable")
    return void res.status(416).set("content-range", `bytes */${file.bytes}`).set("content-length", "0").end();

  const { start, end } = range ?? { start: 0, end: file.bytes - 1 };
  const chunks = req.method === "HEAD" ? undefined : read(open, range, start, end);
  // Before the status goes out, so that storage that is away is still a 503.
  const first = await chunks?.next();
  res.status(range ? 206 : 200).set({
    ...about,
    "content-type": file.contentType,
    "content-length": String(end - start + 1),
    "content-disposition": dispositionOf(file),
    "accept-ranges": "bytes",
    ...(range && { "content-range": `bytes ${start}-${end}/${file.bytes}` }),
  });
  if (!chunks || !first || first.done) return void res.end();
  await pipeline(from(first.value, chunks), res);
}

/**
 * From `start` to `end`. Storage gives up a connection on which a slow caller lets it wait, as a player does whose buffer
 * is full: reading goes on where it was, as long as each attempt brings something.
 */
async function* read(open: Open, range: Range | undefined, start: number, end: number): AsyncGenerator<Buffer> {
  for (let at = start; at <= end; ) {
    const before = at;
    try {
      for await (const chunk of await open(at === start ? range : { start: at, end })) {
        at += chunk.length;
        yield chunk;
      }
      if (at === before) throw noCapacity("Storage has less of this file than it should.");
    } catch (error) {
      if (at === before) throw error instanceof ServiceError ? error : noCapacity("Storage is away.", 5, error);
    }
  }
}

async function* from(first: Buffer, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  yield first;
  yield* rest;
}

function dispositionOf({ id, contentType }: GeneratedFile): string {
  const extension = extensions[contentType];
  return extension ? `inline; filename="${id}.${extension}"` : `attachment; filename="${id}"`;
}
