import { join } from "node:path";
import { type Request, type RequestHandler, type Response, Router } from "express";
// The package's main module needs a browser.
import absolutePath from "swagger-ui-dist/absolute-path.js";
import { methodNotAllowed } from "../http/errors.ts";
import { type PageFile, pageFile, readPageFile, sendPageFile } from "../http/page-files.ts";
import { adminDocument, openApiDocument } from "./openapi.ts";

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>API reference · Inference service</title>
<link rel="icon" href="/docs/favicon-32x32.png">
<link rel="stylesheet" href="/docs/swagger-ui.css">
<style>
  .home { display: block; max-width: 1460px; margin: auto; padding: 16px 20px 0; font: 600 14px sans-serif; color: #0f766e; }
  .dark-mode .home { color: #2dd4bf; }
</style>
<script src="/docs/theme.js"></script>
<a class="home" href="/dashboard">← Dashboard</a>
<div id="ui"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</html>
`;
/** Follows the dashboard's choice of colors (dashboard/src/lib/theme.ts), otherwise the system's. */
const theme = `const system = matchMedia("(prefers-color-scheme: dark)");
function apply() {
  const chosen = localStorage.getItem("dashboard-theme");
  const isDark = chosen === "dark" || (chosen !== "light" && system.matches);
  document.documentElement.classList.toggle("dark-mode", isDark);
}
system.addEventListener("change", apply);
addEventListener("storage", apply);
apply();
`;
const start = `SwaggerUIBundle({ url: "/openapi.json", dom_id: "#ui", validatorUrl: null });\n`;

/** The files of Swagger UI that the page needs. */
const files = ["swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png"];

function serveFile(name: string): RequestHandler {
  let file: Promise<PageFile> | undefined;
  return async (req, res) => {
    file ??= readPageFile(join(absolutePath(), name));
    await sendPageFile(req, res.set("cache-control", "public, max-age=3600"), await file);
  };
}

/** `GET /openapi.json`, and `GET /docs`, which shows it without scripts of other hosts. */
export function docsRoutes({ publicUrl }: { publicUrl: () => string }): Router {
  const router = Router();
  let document: PageFile | undefined;
  router.get("/openapi.json", (req, res) => {
    document ??= pageFile(".json", Buffer.from(JSON.stringify(openApiDocument(publicUrl()))));
    return sendPageFile(req, res, document);
  });
  router.get("/docs", (_req, res) => void res.type("html").send(page));
  router.get("/docs/theme.js", (_req, res) => void res.type("js").send(theme));
  router.get("/docs/start.js", (_req, res) => void res.type("js").send(start));
  for (const name of files) router.get(`/docs/${name}`, serveFile(name));
  return router;
}

/** `GET /admin/openapi.json`, for operators: `identify` throws for others. */
export function adminDocsRoutes(
  deps: { publicUrl: () => string },
  identify: (req: Request, res: Response) => Promise<string>,
): Router {
  const router = Router();
  let document: string | undefined;
  router.get("/admin/openapi.json", async (req, res) => {
    await identify(req, res);
    document ??= JSON.stringify(adminDocument(`${deps.publicUrl()}/admin/v1`));
    res.type("json").send(document);
  });
  router.all("/admin/openapi.json", methodNotAllowed("GET", "HEAD"));
  return router;
}
