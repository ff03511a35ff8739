import { isObject, type JsonObject } from "#json";
import { refusal } from "../provider.ts";

/**
 * Bounds the time for which the schemas of one answer block the event loop. No library does: json-schema-faker 0.6 works for
 * seconds on 2,000 parts of an allOf, and for more than 20 on a `minLength` of 500 million.
 */
const maxSteps = 50_000;

/**
 * A value that satisfies a JSON schema. Throws 400 naming `param` for a schema that takes too many steps. Supports the
 * schemas of tools and structured outputs (https://platform.openai.com/docs/guides/structured-outputs#supported-schemas) and
 * more, but not `pattern`, `not` and conditions. Strings and numbers come from the prompt where they fit.
 */
export function fill(schema: unknown, words: Words, param: string): unknown {
  return value(schema, { root: schema, words, param, name: "value", depth: 0, budget: { values: 5_000 } });
}

interface Place {
  readonly root: unknown;
  readonly words: Words;
  readonly param: string;
  /** The property that gets the value. */
  readonly name: string;
  readonly depth: number;
  /** Limits the values of a schema whose references multiply. */
  readonly budget: { values: number };
}

const maxDepth = 24;

function spend(steps: number, { words, param }: Place): void {
  words.steps -= steps;
  if (words.steps < 0) throw refusal(`${param}: this schema is too large for the local model.`, param);
}

function value(schema: unknown, place: Place): unknown {
  if (!isObject(schema) || place.depth > maxDepth || --place.budget.values < 0) return null;
  const deeper = { ...place, depth: place.depth + 1 };
  if (typeof schema.$ref === "string") return value(resolved(schema, place), deeper);
  if ("const" in schema) return schema.const;
  if (Array.isArray(schema.enum) && schema.enum.length > 0) {
    spend(schema.enum.length * place.words.searchSteps, place);
    return place.words.oneOf(schema.enum);
  }
  const choices = [schema.anyOf, schema.oneOf].find(Array.isArray) as unknown[] | undefined;
  if (choices) return value({ ...schema, anyOf: undefined, oneOf: undefined, ...simplest(choices, place) }, deeper);
  if (Array.isArray(schema.allOf)) return value(merged(schema, schema.allOf, place), deeper);
  return generators.get(typeOf(schema))?.(schema, deeper) ?? null;
}

/** JSON Schema has seven types. */
const maxTypes = 7;

function typeOf(schema: JsonObject): unknown {
  const { type } = schema;
  if (Array.isArray(type)) return type.slice(0, maxTypes).find((each) => each !== "null") ?? "null";
  if (type !== undefined) return type;
  if (isObject(schema.properties)) return "object";
  return schema.items !== undefined ? "array" : "string";
}

/** The first of several alternatives; deep in the value, the first that does not nest further. */
function simplest(choices: readonly unknown[], place: Place): JsonObject {
  const { depth } = place;
  spend(choices.length, place);
  const known = choices.map((choice) => resolved(choice, place));
  const isLeaf = (choice: unknown) => isObject(choice) && !["object", "array"].includes(String(typeOf(choice)));
  const isNull = (choice: unknown) => isObject(choice) && choice.type === "null";
  return objectOf(known.find(depth > maxDepth / 3 ? isLeaf : (choice) => !isNull(choice)) ?? known[0]);
}

function merged(schema: JsonObject, all: readonly unknown[], place: Place): JsonObject {
  const { allOf: _, ...own } = schema;
  spend(all.length, place);
  const parts = [own, ...all.map((part) => resolved(part, place)).filter(isObject)];
  // fromEntries takes __proto__ as a field like any other.
  const joined = (objects: readonly JsonObject[]): JsonObject => {
    const fields = objects.flatMap((each) => Object.entries(each));
    spend(fields.length, place);
    return Object.fromEntries(fields);
  };
  const properties = joined(parts.map((part) => objectOf(part.properties)));
  const required = parts.flatMap((part) => listOf(part.required));
  spend(required.length, place);
  return { ...joined(parts), ...(Object.keys(properties).length > 0 && { properties, required }) };
}

function object(schema: JsonObject, place: Place): JsonObject {
  const properties = objectOf(schema.properties);
  const required = listOf(schema.required).filter((name) => typeof name === "string");
  const names = required.length > 0 ? required : place.depth > maxDepth / 3 ? [] : Object.keys(properties);
  spend(names.length, place);
  // fromEntries takes __proto__ as a property like any other.
  return Object.fromEntries(names.map((name) => [name, value(properties[name] ?? {}, { ...place, name })]));
}

function array(schema: JsonObject, place: Place): unknown[] {
  const fixed = listOf(schema.prefixItems);
  const least = numberOf(schema.minItems) ?? (place.depth > maxDepth / 3 ? 0 : 1);
  const length = Math.min(Math.max(least, fixed.length), numberOf(schema.maxItems) ?? 1_000, 1_000);
  const items: unknown[] = [];
  while (items.length < length && place.budget.values > 0)
    items.push(value(fixed[items.length] ?? schema.items ?? {}, place));
  return items;
}

const formats: Readonly<Record<string, string>> = {
  date: "2025-01-31",
  time: "12:30:00Z",
  "date-time": "2025-01-31T12:30:00Z",
  duration: "PT1H",
  email: "person@example.com",
  hostname: "example.com",
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
  uri: "https://example.com/",
  uuid: "00000000-0000-4000-8000-000000000000",
};

function string(schema: JsonObject, place: Place): string {
  const { words, name } = place;
  const format = formats[String(schema.format)];
  if (format !== undefined) return format;
  const most = numberOf(schema.maxLength) ?? 1_000;
  const least = Math.min(numberOf(schema.minLength) ?? 0, 10_000);
  spend(least >> 6, place);
  return (words.text() ?? name).slice(0, most).padEnd(least, ".");
}

function number(schema: JsonObject, place: Place): number {
  const { words } = place;
  spend(words.numberCount() >> 6, place);
  const step = numberOf(schema.multipleOf) ?? (typeOf(schema) === "integer" ? 1 : undefined);
  const [above = Number.NEGATIVE_INFINITY, below = Number.POSITIVE_INFINITY] = [
    numberOf(schema.exclusiveMinimum),
    numberOf(schema.exclusiveMaximum),
  ];
  const low = Math.max(numberOf(schema.minimum) ?? Number.NEGATIVE_INFINITY, above);
  const high = Math.min(numberOf(schema.maximum) ?? Number.POSITIVE_INFINITY, below);
  const fits = (candidate: number) =>
    candidate >= low &&
    candidate <= high &&
    candidate !== above &&
    candidate !== below &&
    (step === undefined || Number.isInteger(candidate / step));
  const unit = step ?? 1;
  const nearLow = Math.ceil(low / unit) * unit;
  const nearHigh = Math.floor(high / unit) * unit;
  const plain = [1, 0, nearLow, nearLow + unit, nearHigh, nearHigh - unit, (low + high) / 2];
  return words.number(fits) ?? plain.find((candidate) => Number.isFinite(candidate) && fits(candidate)) ?? 0;
}

const generators = new Map<unknown, (schema: JsonObject, place: Place) => unknown>([
  ["object", object],
  ["array", array],
  ["string", string],
  ["integer", number],
  ["number", number],
  ["boolean", () => true],
]);

/** Resolves a reference; returns any other schema unchanged. */
function resolved(schema: unknown, place: Place): unknown {
  if (!isObject(schema) || typeof schema.$ref !== "string") return schema;
  if (!schema.$ref.startsWith("#")) return {};
  const keys = schema.$ref.split("/").slice(1);
  spend(keys.length, place);
  return keys.reduce<unknown>((at, key) => {
    const name = key.replaceAll("~1", "/").replaceAll("~0", "~");
    return isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  }, place.root);
}

const objectOf = (each: unknown): JsonObject => (isObject(each) ? each : {});
const listOf = (each: unknown): readonly unknown[] => (Array.isArray(each) ? each : []);
const numberOf = (each: unknown): number | undefined => (typeof each === "number" ? each : undefined);

export type Words = ReturnType<typeof wordsOf>;

/** The values that a prompt names, each used once: quoted texts, then capitalized names; and numbers. */
export function wordsOf(prompt: string) {
  const quoted = Array.from(prompt.matchAll(/"([^"\n]{1,200})"|'([^'\n]{1,200})'(?!\w)/g), ([, a, b]) => a ?? b ?? "");
  // The first word of a sentence is always capitalized, so it does not count as a name.
  const names = Array.from(
    prompt.matchAll(/(?<=[^.!?\s]\s)\p{Lu}[\p{L}'-]*(?: \p{Lu}[\p{L}'-]*)*/gu),
    ([name]) => name,
  );
  const texts = [...quoted, ...names];
  const numbers = Array.from(prompt.matchAll(/(?<![\w.])-?\d{1,15}(?:\.\d{1,10})?(?!\.*\w)/g), ([each]) =>
    Number(each),
  );
  const lower = prompt.toLowerCase();
  return {
    /** The steps that remain for schemas. */
    steps: maxSteps,
    /** The cost of searching the prompt for one enum value. */
    searchSteps: Math.ceil((lower.length + 1) / 1_024),
    numberCount: () => numbers.length,
    text: () => texts.shift(),
    number(fits: (candidate: number) => boolean) {
      const at = numbers.findIndex(fits);
      return at === -1 ? undefined : numbers.splice(at, 1)[0];
    },
    /** The value that the prompt names, else the first. */
    oneOf: (values: readonly unknown[]) =>
      values.find((each) => typeof each === "string" && each !== "" && lower.includes(each.toLowerCase())) ?? values[0],
  };
}
