import { existsSync, readFileSync, writeFileSync } from "node:fs";
import openapi, { astToString, type OpenAPI3 } from "openapi-typescript";
import { adminDocument, openApiDocument } from "../api/routes/openapi.ts";

/** Formats and endpoints that no screen uses. */
const unused =
  /^\/(v1beta|v2)\/|^\/v1\/(messages(?!\/batches)|responses|completions|rerank|moderations|audio|images\/(edits|variations))/;

function calledByScreens(): OpenAPI3 {
  const document = openApiDocument("/dashboard/api") as OpenAPI3;
  const paths = Object.fromEntries(Object.entries(document.paths ?? {}).filter(([path]) => !unused.test(path)));
  return { ...document, paths };
}

const documents = {
  "dashboard/src/api/schema.d.ts": calledByScreens(),
  "dashboard/src/operator/schema.d.ts": adminDocument("/dashboard/api/admin/v1") as OpenAPI3,
};

/** Writes the dashboard's request and response types from the OpenAPI documents, before the type check. */
for (const [path, document] of Object.entries(documents)) {
  const file = new URL(`../${path}`, import.meta.url);
  const types = `// Written by \`npm run dashboard:types\` from the OpenAPI document.\n\n${astToString(await openapi(document))}`;
  // Leave unchanged files alone, so that they stay older than the last build of the dashboard.
  if (!existsSync(file) || readFileSync(file, "utf8") !== types) writeFileSync(file, types);
}
