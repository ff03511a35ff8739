import { adminDocument } from "../api/routes/openapi.ts";

/** The parts of the admin interface's OpenAPI document of which the admin command is made. */

interface Schema {
  readonly type?: unknown;
  readonly enum?: unknown;
  readonly description?: string | undefined;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}
interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string | undefined;
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly schema: Schema }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
}

const valuesOf = <T, U>(of: Readonly<Record<string, T>>, map: (value: T) => U) =>
  Object.fromEntries(Object.entries(of).map(([name, value]) => [name, map(value)]));

/** The keywords on which an option depends. Limits are the service's to check. */
const cut = ({ type, enum: values, description, anyOf, properties }: Schema): Schema => ({
  type,
  enum: values,
  description,
  ...(anyOf && { anyOf: anyOf.map(cut) }),
  ...(properties && { properties: valuesOf(properties, cut) }),
});

/** The operations by id: the fields of the query or body with their schemas, and those that are required. */
export function adminOperations() {
  const paths = adminDocument("").paths as Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  return Object.fromEntries(
    Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId, summary, description, parameters = [], requestBody }]) => {
        const query = parameters.filter((each) => each.in === "query").map(({ name, schema }) => [name, schema]);
        const { properties = {}, required = [] } = requestBody?.content["application/json"]?.schema ?? {};
        const fields = valuesOf<Schema, Schema>({ ...Object.fromEntries(query), ...properties }, cut);
        return [operationId, { method: method.toUpperCase(), path, summary, description, fields, required }];
      }),
    ),
  );
}
