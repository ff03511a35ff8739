import { writeFileSync } from "node:fs";
import openapi, { astToString, type OpenAPI3 } from "openapi-typescript";
import { openApiDocument } from "../api/routes/openapi.ts";

/** Formats and endpoints that no screen calls. */
const unused =
  /^\/(v1beta|v2)\/|^\/v1\/(messages|responses|completions|rerank|moderations|audio|images\/(edits|variations))/;

/** The dashboard's types of requests and answers, made from the OpenAPI document. */
export async function dashboardTypes(): Promise<string> {
  const document = openApiDocument("/dashboard/api") as OpenAPI3;
  const paths = Object.fromEntries(Object.entries(document.paths ?? {}).filter(([path]) => !unused.test(path)));
  const types = astToString(await openapi({ ...document, paths }));
  return `// Written by \`npm run docs\` from the OpenAPI document: do not edit.\n\n${types}`;
}

if (import.meta.main)
  writeFileSync(new URL("../dashboard/src/api/schema.d.ts", import.meta.url), await dashboardTypes());
