import { pipeline } from "node:stream/promises";
import { type Request, type RequestHandler, type Response, Router } from "express";
import { z } from "zod";
import { fileExpired, notFound } from "#errors";
import { type Files, fileLifetimeMs, type GeneratedFile } from "#files";
import type { Uses } from "#platform/uses";
import { methodNotAllowed } from "../http/errors.ts";
import { requestId } from "../http/openapi/headers.ts";
import { binary, type Content, operation, pathId } from "../http/openapi/operation.ts";
import { beginReading, type Open, type Range, sendStored } from "../http/read-stored.ts";
import type { OpenCalls } from "../open-calls/index.ts";

interface FileDeps extends Uses<"clock" | "log"> {
  readonly files: Pick<Files, "generated">;
  readonly openCalls: Pick<OpenCalls, "arrive">;
}

const fileId = /^file_[0-9A-Za-z]{40}$/;

/** Types that browsers show or play. Any other file is an attachment, so that no generated web page runs here. */
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

/** Client generators drop an answer of any type, so each type is listed. A file of another type is read as the first. */
export const file: Content = Object.fromEntries(
  ["application/octet-stream", ...Object.keys(extensions)].map((type) => [type, { schema: binary }]),
);

/** Generated files, mounted at `/media`. Anyone who has the id may read the file. */
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
    await sendStored({ res, file: id, arrive: () => openCalls.arrive(), clock, log }, async (signal) => {
      const file = fileId.test(id) ? await files.generated.find(id) : undefined;
      if (!file) throw notFound("file");
      if (file === "expired") throw fileExpired();
      await send(req, res, file, clock.now(), (range) => files.generated.open(id, range, signal));
    });
  };

async function send(req: Request<{ id: string }>, res: Response, file: GeneratedFile, now: number, open: Open) {
  const validators = {
    etag: file.etag,
    "last-modified": new Date(file.expiresAt - fileLifetimeMs).toUTCString(),
    // A cached copy must not outlive the file.
    "cache-control": `private, max-age=${Math.max(0, Math.floor((file.expiresAt - now) / 1000))}, immutable`,
  };
  res.set(validators);
  if (isFresh(req, res)) return void res.status(304).end();
  const range = rangeOf(req, res, file.bytes);
  for (const name of Object.keys(validators)) res.removeHeader(name);
  if (range === "unsatisfiable")
    return void res.status(416).set("content-range", `bytes */${file.bytes}`).set("content-length", "0").end();

  const { start, end } = range ?? { start: 0, end: file.bytes - 1 };
  const chunks = req.method === "HEAD" ? undefined : await beginReading(open, range, start, end);
  res.status(range ? 206 : 200).set({
    ...validators,
    "content-type": file.contentType,
    "content-length": String(end - start + 1),
    "content-disposition": dispositionOf(file),
    "accept-ranges": "bytes",
    ...(range && { "content-range": `bytes ${start}-${end}/${file.bytes}` }),
  });
  if (!chunks) return void res.end();
  await pipeline(chunks, res);
}

function dispositionOf({ id, contentType }: GeneratedFile): string {
  const extension = extensions[contentType];
  return extension ? `inline; filename="${id}.${extension}"` : `attachment; filename="${id}"`;
}

/**
 * Returns true if the caller's copy is current, by `ETag` and `Last-Modified` of the answer (RFC 9110, section 13.2.2).
 * Express's `req.fresh` is false for every request with `Cache-Control: no-cache`, and `fetch` adds that to conditional
 * requests.
 */
function isFresh(req: Request, res: Response): boolean {
  const tags = req.get("if-none-match");
  if (tags !== undefined) {
    const etag = res.get("etag");
    return tags.split(",").some((tag) => tag.trim() === "*" || tag.trim().replace(/^W\//, "") === etag);
  }
  const since = Date.parse(req.get("if-modified-since") ?? "");
  return Date.parse(res.get("last-modified") ?? "") <= since;
}

/**
 * The part of a body that `Range` requests. Returns undefined for the whole body: there is no such header, it is not one
 * range of bytes (RFC 9110 lets a server ignore several), or `If-Range` does not match.
 */
function rangeOf(req: Request, res: Response, bytes: number): Range | "unsatisfiable" | undefined {
  if (req.method !== "GET" || !isUnchanged(req.get("if-range"), res)) return undefined;
  const ranges = req.range(bytes);
  if (ranges === undefined || ranges === -2) return undefined;
  if (ranges === -1) return "unsatisfiable";
  return ranges.type === "bytes" && ranges.length === 1 ? ranges[0] : undefined;
}

/** A strong comparison (RFC 9110, section 13.1.5): a weak tag never matches. */
const isUnchanged = (condition: string | undefined, res: Response): boolean =>
  condition === undefined || condition === res.get("etag") || condition === res.get("last-modified");

const fileConditions = z.object({
  Range: z
    .string()
    .optional()
    .describe("The range of the file, such as `bytes=0-1023`; a header with several ranges is ignored"),
  "If-Range": z.string().optional().describe("The whole file is sent if its `ETag` is a different one"),
  "If-None-Match": z.string().optional().describe("The response is a 304 if the file has this `ETag`"),
});

const fileHeaders = z.object({
  ...requestId,
  ETag: z.string(),
  "Accept-Ranges": z.literal("bytes"),
  "Content-Disposition": z
    .string()
    .describe("Contains a file name; `attachment` for types that browsers do not display"),
});

const partHeaders = fileHeaders.extend({ "Content-Range": z.string() });

export const fileOperations = {
  "GET /media/{id}": operation("getFile", "Get a generated file; supports Range", {
    security: [],
    params: { ...pathId("file_..."), header: fileConditions },
    errors: [404, 410, 500, 503],
    responses: {
      "200": { description: "The file", headers: fileHeaders, content: file },
      "206": { description: "The requested range", headers: partHeaders, content: file },
      "304": {
        description: "The caller's copy is current",
        headers: fileHeaders.pick({ "x-request-id": true, ETag: true }),
      },
      "416": {
        description: "The file ends before the requested range",
        headers: partHeaders.pick({ "x-request-id": true, "Content-Range": true }),
      },
    },
  }),
};
