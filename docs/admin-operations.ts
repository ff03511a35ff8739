import { adminDocument } from "../api/openapi/admin/index.ts";

/** The parts of the admin interface's OpenAPI document of which the admin command is made. */

interface Input {
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
}
interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly schema: unknown }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Input }>> };
}

/** By operation id: the fields of its query or body with their schemas, and which of them it needs. */
export function adminOperations() {
  const paths = adminDocument("").paths as Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  return Object.fromEntries(
    Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId, summary, description, parameters = [], requestBody }]) => {
        const query = parameters.filter((each) => each.in === "query").map(({ name, schema }) => [name, schema]);
        const { properties = {}, required = [] } = requestBody?.content["application/json"]?.schema ?? {};
        const fields = { ...Object.fromEntries(query), ...properties };
        return [operationId, { method: method.toUpperCase(), path, summary, description, fields, required }];
      }),
    ),
  );
}
