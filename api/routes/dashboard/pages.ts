import { readdir, stat } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { type Request, type RequestHandler, Router } from "express";
import { methodNotAllowed, noSuchRoute } from "../../http/errors.ts";
import { type PageFile, readPageFile, sendPageFile } from "../../http/page-files.ts";

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
    await sendPageFile(req, res, file);
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
export const isNavigation = (req: Request): boolean =>
  req.get("sec-fetch-mode") === "navigate" || (req.get("accept") ?? "").includes("text/html");

async function readBuild(folder: string, builtAt: number): Promise<Build> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const nameOf = (path: string) => relative(folder, path).split(sep).join("/");
  const files = await Promise.all(paths.map(async (path) => [nameOf(path), await readPageFile(path)] as const));
  return { builtAt, files: new Map(files) };
}
