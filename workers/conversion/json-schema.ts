import { invalidValue } from "#errors";
import { formedSchema } from "#formats";
import { type JsonObject, list, object, omitNullish, strings, text } from "#json";

/** Prevents a stack overflow in the recursion. */
const maxDepth = 64;
const listFields = ["anyOf", "oneOf", "allOf", "prefixItems"];
const mapFields = ["properties", "$defs", "definitions"];

function checkDepth(path: string, depth: number): void {
  if (depth === maxDepth) throw invalidValue(path, `${path}: is nested too deep.`);
}

/** The schema with its direct subschemas replaced. Returns the same object if it has none. */
function mapSubschemas(
  schema: JsonObject,
  convert: (subschema: JsonObject) => JsonObject,
  singleFields: readonly string[] = ["items", "additionalProperties"],
): JsonObject {
  const hasSubschemas = (field: string) =>
    listFields.includes(field) || singleFields.includes(field) || mapFields.includes(field);
  if (!Object.keys(schema).some(hasSubschemas)) return schema;
  const one = (value: unknown) => (typeof value === "object" && value !== null ? convert(object(value)) : value);
  const fields = Object.entries(schema).map(([field, value]): [string, unknown] => {
    if (listFields.includes(field) && Array.isArray(value)) return [field, value.map(one)];
    if (singleFields.includes(field)) return [field, one(value)];
    if (!mapFields.includes(field) || typeof value !== "object" || value === null) return [field, value];
    return [field, Object.fromEntries(Object.entries(value).map(([name, each]) => [name, one(each)]))];
  });
  return Object.fromEntries(fields);
}

const countFields = ["maxItems", "minItems", "minProperties", "maxProperties", "minLength", "maxLength"];

/** Google's JSON encodes 64-bit numbers as strings. */
const numeric = (value: unknown): unknown => (typeof value === "string" && value !== "" ? Number(value) : value);

/**
 * Anthropic requires `additionalProperties: false` on every object. All values of the closed schema are valid for the open
 * one.
 */
export function closeObjects(schema: unknown, path: string, depth = 0): JsonObject {
  checkDepth(path, depth);
  const closed = mapSubschemas(object(schema), (subschema) => closeObjects(subschema, path, depth + 1), ["items"]);
  const isObject = closed["type"] === "object" || closed["properties"] !== undefined;
  return isObject ? { ...closed, additionalProperties: false } : closed;
}

/** Google's OpenAPI-like schema (`type` in capitals, `nullable`) as JSON Schema. */
export function geminiSchemaToChat(value: unknown, path: string, depth = 0): JsonObject {
  checkDepth(path, depth);
  const {
    type,
    nullable,
    format,
    example,
    propertyOrdering: _,
    ...rest
  } = mapSubschemas(formedSchema(value, `${path}.`), (subschema) => geminiSchemaToChat(subschema, path, depth + 1));
  const lowerType = text(type).toLowerCase();
  const name = lowerType === "type_unspecified" || !lowerType ? undefined : lowerType;
  const isNullable = nullable === true;
  const counts = countFields.filter((field) => typeof rest[field] === "string");
  return omitNullish({
    type: Array.isArray(type) ? type : isNullable && name ? [name, "null"] : name,
    ...rest,
    ...Object.fromEntries(counts.map((field) => [field, numeric(rest[field])])),
    ...(isNullable && Array.isArray(rest["enum"]) && { enum: [...strings(rest["enum"]), null] }),
    ...(isNullable && !name && Array.isArray(rest["anyOf"]) && { anyOf: [...list(rest["anyOf"]), { type: "null" }] }),
    format: format === "enum" ? undefined : format,
    examples: example == null ? undefined : [example],
  });
}

/** JSON Schema from Google's clients, some of which write types in capitals, which Google accepts. */
export function lowerTypes(value: unknown, path: string, depth = 0): JsonObject {
  checkDepth(path, depth);
  const schema = mapSubschemas(object(value), (subschema) => lowerTypes(subschema, path, depth + 1));
  const { type } = schema;
  if (typeof type === "string") return { ...schema, type: type.toLowerCase() };
  return Array.isArray(type) ? { ...schema, type: strings(type).map((each) => each.toLowerCase()) } : schema;
}

/** Google accepts neither `$schema` nor `const`. */
export function schemaToGemini(value: unknown, path: string, depth = 0): JsonObject {
  checkDepth(path, depth);
  const {
    $schema: _,
    const: constant,
    ...rest
  } = mapSubschemas(object(value), (subschema) => schemaToGemini(subschema, path, depth + 1));
  return constant === undefined ? rest : { ...rest, enum: [constant] };
}

/**
 * The schema with every object closed, as OpenAI's strict mode requires. Returns undefined if a property is optional or
 * further properties are allowed, because strict mode would change what the schema accepts.
 */
export function strictSchema(value: unknown, path: string, depth = 0): JsonObject | undefined {
  checkDepth(path, depth);
  let isStrict = true;
  const closed = mapSubschemas(object(value), (subschema) => {
    const strict = strictSchema(subschema, path, depth + 1);
    if (!strict) isStrict = false;
    return strict ?? subschema;
  });
  const { type, properties, additionalProperties = false, required } = closed;
  const isObject = properties !== undefined || type === "object" || (Array.isArray(type) && type.includes("object"));
  if (!isObject) return isStrict ? closed : undefined;
  const requiredNames = new Set(strings(required));
  const areAllRequired =
    properties !== undefined && Object.keys(object(properties)).every((name) => requiredNames.has(name));
  return isStrict && areAllRequired && additionalProperties === false ? { ...closed, additionalProperties } : undefined;
}
