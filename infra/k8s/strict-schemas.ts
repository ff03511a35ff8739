import { readFileSync } from "node:fs";
import { Ajv, type ValidateFunction } from "ajv";
import { parse } from "yaml";

/** Validators of Kubernetes objects that, unlike a cluster, also refuse fields missing from the schemas. */

interface Schema {
  [keyword: string]: unknown;
}
interface Kind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}
interface Swagger {
  readonly definitions: Readonly<Record<string, Schema & { "x-kubernetes-group-version-kind"?: readonly Kind[] }>>;
}
interface Definition {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string };
    readonly versions: readonly { readonly name: string; readonly schema: { readonly openAPIV3Schema: Schema } }[];
  };
}

const numberOrText = { type: ["integer", "number", "string"] };
const isSchema = (value: unknown): value is Schema => typeof value === "object" && value !== null;

function strict(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(strict);
  if (!isSchema(schema)) return schema;
  if (schema["format"] === "int-or-string" || schema["x-kubernetes-int-or-string"] === true) return numberOrText;
  const copy = Object.fromEntries(Object.entries(schema).map(([keyword, value]) => [keyword, strict(value)]));
  const isOpen = "additionalProperties" in schema || schema["x-kubernetes-preserve-unknown-fields"] === true;
  return isSchema(schema["properties"]) && !isOpen ? { ...copy, additionalProperties: false } : copy;
}

const keyOf = (group: string, version: string, kind: string) => `${group ? `${group}/` : ""}${version} ${kind}`;

/**
 * Reads Kubernetes' OpenAPI document and custom resource definitions. Returns a function that lists an object's faults.
 */
export function createValidator(swaggerFile: string, definitionFiles: readonly string[]) {
  // Go's patterns may begin with a flag.
  const ofGo = (pattern: string, flags: string) =>
    pattern.includes("(?i)") ? new RegExp(pattern.replace("(?i)", ""), `${flags}i`) : new RegExp(pattern, flags);
  const regExp = Object.assign(ofGo, { code: "new RegExp" });
  const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true, code: { regExp } });
  const { definitions } = JSON.parse(readFileSync(swaggerFile, "utf8")) as Swagger;
  const quantity = "io.k8s.apimachinery.pkg.api.resource.Quantity";
  const document = { definitions: { ...(strict(definitions) as object), [quantity]: numberOrText } };
  ajv.addSchema(document, "kubernetes");

  const validators = new Map<string, () => ValidateFunction>();
  for (const [name, definition] of Object.entries(definitions))
    for (const { group, version, kind } of definition["x-kubernetes-group-version-kind"] ?? [])
      validators.set(keyOf(group, version, kind), () => ajv.compile({ $ref: `kubernetes#/definitions/${name}` }));
  for (const file of definitionFiles) {
    const { spec } = parse(readFileSync(file, "utf8")) as Definition;
    for (const { name, schema } of spec.versions)
      validators.set(keyOf(spec.group, name, spec.names.kind), () =>
        ajv.compile(strict(schema.openAPIV3Schema) as Schema),
      );
  }

  return ({ apiVersion, kind }: { apiVersion: string; kind: string }, object: unknown): string[] => {
    const validate = validators.get(`${apiVersion} ${kind}`)?.();
    if (!validate) return [`there is no ${apiVersion} ${kind}`];
    validate(object);
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  };
}
