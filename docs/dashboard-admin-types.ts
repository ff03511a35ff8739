import { writeFileSync } from "node:fs";
import openapi, { astToString, type OpenAPI3 } from "openapi-typescript";
import { adminDocument } from "../api/routes/openapi.ts";

/** The types of the dashboard's operator screens, made from the OpenAPI document of the admin interface. */
export async function dashboardAdminTypes(): Promise<string> {
  const types = astToString(await openapi(adminDocument("/dashboard/api/admin/v1") as OpenAPI3));
  return `// Written by \`npm run docs\` from the OpenAPI document: do not edit.\n\n${types}`;
}

if (import.meta.main)
  writeFileSync(new URL("../dashboard/src/operator/schema.d.ts", import.meta.url), await dashboardAdminTypes());
