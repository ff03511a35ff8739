import { type Request, type Response, Router, static as serveStatic } from "express";
// The package's main module needs a browser.
import absolutePath from "swagger-ui-dist/absolute-path.js";
import { methodNotAllowed } from "../http/errors.ts";
import { adminDocument, openApiDocument } from "./openapi.ts";

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Inference service</title>
<link rel="icon" href="/docs/favicon-32x32.png">
<link rel="stylesheet" href="/docs/swagger-ui.css">
<div id="ui"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</html>
`;
const start = `SwaggerUIBundle({ url: "/openapi.json", dom_id: "#ui", validatorUrl: null });\n`;

/** `GET /openapi.json`, and `GET /docs`, which shows it without scripts of other hosts. */
export function docsRoutes({ publicUrl }: { publicUrl: () => string }): Router {
  const router = Router();
  let document: string | undefined;
  router.get("/openapi.json", (_req, res) => {
    document ??= JSON.stringify(openApiDocument(publicUrl()));
    res.type("json").send(document);
  });
  router.get("/docs", (_req, res) => void res.type("html").send(page));
  router.get("/docs/start.js", (_req, res) => void res.type("js").send(start));
  router.use("/docs", serveStatic(absolutePath(), { index: false, redirect: false }));
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
