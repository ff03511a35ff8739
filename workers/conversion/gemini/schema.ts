import { invalidValue } from "#errors";
import { formedSchema, given, type JsonObject, list, object, strings, text } from "#formats";

/** Deeper than any schema that means something, and shallow enough for the stack. */
const deepest = 64;
const lists = ["anyOf", "oneOf", "allOf", "prefixItems"];
const maps = ["properties", "$defs", "definitions"];
const single = ["items", "additionalProperties"];

function notTooDeep(at: string, depth: number): void {
  if (depth === deepest) throw invalidValue(at, `${at}: is nested too deep.`);
}

/** The schema with each schema inside of it changed. */
function inside(schema: JsonObject, change: (inner: JsonObject) => JsonObject): JsonObject {
  const one = (value: unknown) => (typeof value === "object" && value !== null ? change(object(value)) : value);
  const fields = Object.entries(schema).map(([field, value]): [string, unknown] => {
    if (lists.includes(field) && Array.isArray(value)) return [field, value.map(one)];
    if (single.includes(field)) return [field, one(value)];
    if (!maps.includes(field) || typeof value !== "object" || value === null) return [field, value];
    return [field, Object.fromEntries(Object.entries(value).map(([name, each]) => [name, one(each)]))];
  });
  return Object.fromEntries(fields);
}

const counts = ["maxItems", "minItems", "minProperties", "maxProperties", "minLength", "maxLength"];

/** 64-bit numbers come as texts. */
const numeric = (value: unknown): unknown => (typeof value === "string" && value !== "" ? Number(value) : value);

/** The provider's kind of schema (types in capitals, `nullable`) as JSON Schema. */
export function jsonSchema(value: unknown, at: string, depth = 0): JsonObject {
  notTooDeep(at, depth);
  const formed = formedSchema(value, `${at}.`);
  const {
    type,
    nullable,
    format,
    example,
    propertyOrdering: _,
    ...rest
  } = inside(formed, (inner) => jsonSchema(inner, at, depth + 1));
  const named = text(type).toLowerCase();
  const name = named === "type_unspecified" || !named ? undefined : named;
  const isNullable = nullable === true;
  return given({
    type: Array.isArray(type) ? type : isNullable && name ? [name, "null"] : name,
    ...rest,
    ...Object.fromEntries(counts.map((field) => [field, numeric(rest[field])])),
    ...(isNullable && Array.isArray(rest["enum"]) && { enum: [...strings(rest["enum"]), null] }),
    ...(isNullable && !name && Array.isArray(rest["anyOf"]) && { anyOf: [...list(rest["anyOf"]), { type: "null" }] }),
    format: format === "enum" ? undefined : format,
    examples: example == null ? undefined : [example],
  });
}

/** JSON Schema as the provider takes it: without `$schema`, and with `enum` for `const`. */
export function providersSchema(value: unknown, at: string, depth = 0): JsonObject {
  notTooDeep(at, depth);
  const { $schema: _, const: only, ...rest } = inside(object(value), (inner) => providersSchema(inner, at, depth + 1));
  return only === undefined ? rest : { ...rest, enum: [only] };
}

/**
 * The schema as strict servers demand it, every object closed; undefined where that would change what fits, for then
 * every property must be given. What fits the closed schema fits the open one.
 */
export function strictSchema(value: unknown, at: string, depth = 0): JsonObject | undefined {
  notTooDeep(at, depth);
  let isStrict = true;
  const closed = inside(object(value), (inner) => {
    const strict = strictSchema(inner, at, depth + 1);
    if (!strict) isStrict = false;
    return strict ?? inner;
  });
  const { type, properties, additionalProperties = false, required } = closed;
  const isObject = properties !== undefined || type === "object" || (Array.isArray(type) && type.includes("object"));
  if (!isObject) return isStrict ? closed : undefined;
  const demanded = new Set(strings(required));
  const isWhole = properties !== undefined && Object.keys(object(properties)).every((name) => demanded.has(name));
  return isStrict && isWhole && additionalProperties === false ? { ...closed, additionalProperties } : undefined;
}
