import { createHash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { extname, join, relative, sep } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { type Request, type RequestHandler, type Response, Router } from "express";
import { methodNotAllowed, noSuchRoute } from "../../http/errors.ts";

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

interface PageFile {
  readonly type: string;
  readonly bytes: Buffer;
  readonly etag: string;
  /** Compressed once, at the first request that accepts the encoding. */
  readonly encoded: Map<Encoding, Promise<Buffer>>;
}

interface Build {
  readonly builtAt: number;
  /** The files by their path after `/dashboard/`. */
  readonly files: ReadonlyMap<string, PageFile>;
}

/** Vite puts a hash of the content into the names of these files. */
const hashed = /^assets\//;

const notBuilt = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>The dashboard is not built</title>
<h1>The dashboard is not built</h1>
<p>Run <code>npm run build</code> in the service's folder, then reload this page.</p>
</html>
`;

/** Serves the built page from memory, at `GET /dashboard` and below. The page's own routes get `index.html`. */
export function pageRoutes(folder: string): Router {
  let build: Promise<Build | undefined> | undefined;

  /** Reads the folder again after another build. */
  async function current(): Promise<Build | undefined> {
    const builtAt = await stat(join(folder, "index.html")).then(
      ({ mtimeMs }) => mtimeMs,
      () => undefined,
    );
    if (builtAt === undefined) return undefined;
    const known = await build;
    if (known?.builtAt === builtAt) return known;
    build = readBuild(folder, builtAt).catch(() => undefined);
    return build;
  }

  const serve: RequestHandler = async (req, res, next) => {
    const name = decodeURIComponent(req.path.slice(1));
    const isAsset = hashed.test(name);
    // Asset names contain a hash of their content, so a name in the cached build is current. Any other may be in a newer
    // build.
    const known = isAsset ? ((await build)?.files.has(name) ? await build : await current()) : await current();
    if (!known) return void res.status(503).set("cache-control", "no-store").type("html").send(notBuilt);
    const file = known.files.get(name) ?? (isNavigation(req) && !isAsset ? known.files.get("index.html") : undefined);
    if (!file) return noSuchRoute(req, res, next);
    res.set("cache-control", isAsset ? "public, max-age=31536000, immutable" : "no-cache");
    await send(req, res, file);
  };

  const router = Router();
  router.get(["/", "/*path"], serve);
  router.all(["/", "/*path"], methodNotAllowed("GET", "HEAD"));
  return router;
}

/**
 * Returns true if the browser navigates to a page. The path cannot tell, because names of models in the page's routes have
 * dots.
 */
const isNavigation = (req: Request) =>
  req.get("sec-fetch-mode") === "navigate" || (req.get("accept") ?? "").includes("text/html");

async function send(req: Request, res: Response, file: PageFile): Promise<void> {
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

async function readBuild(folder: string, builtAt: number): Promise<Build> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const files = await Promise.all(
    paths.map(async (path): Promise<[string, PageFile]> => {
      const bytes = await readFile(path);
      const etag = `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 27)}"`;
      const type = types[extname(path)] ?? "application/octet-stream";
      return [relative(folder, path).split(sep).join("/"), { type, bytes, etag, encoded: new Map() }];
    }),
  );
  return { builtAt, files: new Map(files) };
}
