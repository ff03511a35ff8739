import { z } from "zod";
import { countOf, fieldSchema, inputCheck, type JsonSchema } from "./input.ts";
import { type ListPrices, parsePrice } from "./prices.ts";
import {
  type Complain,
  condition,
  isJsonTask,
  type ModelType,
  type PriceKey,
  priceKeys,
  unitRules as rules,
  type Task,
  tasks,
  type UnitRule,
} from "./types.ts";

const tasksOf = {
  text: [],
  embeddings: [],
  image: ["images"],
  video: ["video"],
  audio: ["speech", "transcription", "music"],
  other: tasks,
} as const satisfies Record<ModelType, readonly Task[]>;

/** The rules that each price key accepts. */
const units = z.strictObject({
  image: rules.field.optional(),
  input_image: rules.items.optional(),
  second: rules.field.optional(),
  character: rules.characters.optional(),
  minute: z.union([rules.minutes, rules.startedMinutes, rules.field]).optional(),
  request: rules.count.optional(),
} satisfies Partial<Record<PriceKey, unknown>>);

export const mediaFields = <Pricing extends z.ZodType<ListPrices>>(pricing: Pricing) => ({
  task: z.enum(tasks).optional(),
  /** JSON Schema of the model's own parameters. */
  input_schema: z.record(z.string(), z.unknown()).optional(),
  /** The format of images for calls that specify none, as the clients of the provider's own API expect. */
  default_response_format: z.enum(["url", "b64_json"]).optional(),
  /** The format of images made from other images, if it differs. */
  default_edit_format: z.enum(["url", "b64_json"]).optional(),
  /** The number of units that an input can make, for every price key. */
  units: units.default({}),
  /** Prices that depend on the input. The first variant that matches and has the key determines its price. */
  variants: z
    .array(
      z.strictObject({
        name: z.string().regex(/^[a-z0-9]+(_[a-z0-9]+)*$/, "must be lower-case words joined by _"),
        when: z.record(z.string(), condition).refine((when) => Object.keys(when).length > 0, "names no field"),
        pricing,
      }),
    )
    .default([]),
});

type Fields = z.infer<z.ZodObject<ReturnType<typeof mediaFields<z.ZodType<ListPrices>>>>>;
export interface MediaEntry extends Fields {
  readonly type: ModelType;
  readonly pricing: ListPrices;
}

const isRequired = (schema: JsonSchema, name: string) =>
  Array.isArray(schema["required"]) && schema["required"].includes(name);

/** Returns the branches of `anyOf`, or the schema itself. */
const branches = (schema: JsonSchema): readonly JsonSchema[] =>
  Array.isArray(schema["anyOf"]) ? (schema["anyOf"] as readonly JsonSchema[]) : [schema];

const isAtMost = (limit: unknown, max: number) => typeof limit === "number" && limit <= max;

/** Checks that the number of units in a field is bounded and positive. */
function countFault(named: JsonSchema, whole: boolean): string | undefined {
  const fits = (value: unknown) => {
    const count = countOf(value);
    return count !== undefined && (!whole || Number.isInteger(count));
  };
  if (Array.isArray(named["enum"])) return named["enum"].every(fits) ? undefined : "has values that are not counts";
  if (named["type"] !== "integer" && (whole || named["type"] !== "number"))
    return `must be an enum or of type ${whole ? "integer" : "number"}`;
  if (!isAtMost(named["maximum"], 100_000)) return "needs a maximum, of 100000 at most";
  return fits(named["minimum"]) ? undefined : "needs a minimum above 0";
}

function itemsFault(named: JsonSchema): string | undefined {
  const bounded = branches(named).every(
    ({ type, maxItems }) => type === "string" || (type === "array" && isAtMost(maxItems, 1_000)),
  );
  return bounded ? undefined : "must be a string, or a list with maxItems";
}

function ruleFault(key: PriceKey, rule: UnitRule, named: JsonSchema): string | undefined {
  if ("field" in rule) return countFault(named, key !== "second" && key !== "minute");
  if ("items_of" in rule) return itemsFault(named);
  if ("started_minutes_of" in rule) return countFault(named, true);
  if (named["type"] !== "string") return "must be of type string";
  if ("characters_of" in rule && !isAtMost(named["maxLength"], 1_000_000)) return "needs a maxLength";
  return undefined;
}

const fieldsOf = (rule: UnitRule): readonly string[] => {
  if ("field" in rule) return [rule.field];
  if ("started_minutes_of" in rule) return [rule.started_minutes_of];
  if ("characters_of" in rule) return [rule.characters_of];
  if ("minutes_of" in rule) return [rule.minutes_of];
  return "items_of" in rule ? rule.items_of : [];
};

/** A default is counted and priced like a caller's value, so it must also match the schema. */
function checkDefaults(schema: JsonSchema, complain: Complain) {
  const { properties, $defs } = schema;
  for (const name of Object.keys((properties ?? {}) as object)) {
    const named = fieldSchema(schema, name);
    if (named?.["default"] === undefined) continue;
    if (!inputCheck({ ...named, ...($defs !== undefined && { $defs }) }).safeParse(named["default"]).success)
      complain(["input_schema", "properties", name, "default"], "does not match the schema of the field");
  }
}

/** Every counted field must exist and have a limit, so that every hold is bounded. */
function checkUnits(entry: MediaEntry, schema: JsonSchema, complain: Complain) {
  for (const key of priceKeys) {
    const rule = (entry.units as Partial<Record<PriceKey, UnitRule>>)[key];
    if ((rule === undefined) !== (entry.pricing[key] === undefined))
      complain(["units", key], "and its price need each other");
    if (rule === undefined) continue;
    if ("per" in rule && rule.per && entry.pricing[rule.per] === undefined)
      complain(["units", key, "per"], `'${rule.per}' has no price`);
    for (const name of fieldsOf(rule)) {
      const named = fieldSchema(schema, name);
      const fault = named && ruleFault(key, rule, named);
      if (named === undefined) complain(["units", key], `counts '${name}', which input_schema does not have`);
      else if (fault) complain(["input_schema", "properties", name], `${fault}, because units.${key} counts it`);
      else if (!("items_of" in rule) && !isRequired(schema, name) && named["default"] === undefined)
        complain(["input_schema", "properties", name], `is neither required nor has a default: units.${key} counts it`);
    }
  }
  const n = fieldSchema(schema, "n");
  if (entry.task === "images" && n !== undefined && !isAtMost(n["maximum"], 4))
    complain(["input_schema", "properties", "n"], "must have a maximum of 4 or less");
}

function valuesOf(named: JsonSchema): readonly unknown[] | undefined {
  if (named["type"] === "boolean") return [true, false];
  return Array.isArray(named["enum"]) ? named["enum"] : undefined;
}

type Variant = MediaEntry["variants"][number];

/** Every value that a price depends on must be listed, and omitting the field must not make a call cheaper. */
function conditionFaults(entry: MediaEntry, variant: Variant, name: string, schema: JsonSchema): readonly string[] {
  const named = fieldSchema(schema, name);
  const given = variant.when[name];
  if (named === undefined) return ["is not in input_schema"];
  if (given === undefined || "present" in given) return [];
  const values = valuesOf(named);
  if (values === undefined) return ["must be an enum in input_schema, so that every value has a price"];
  const never = given.filter((value) => !values.includes(value));
  const mayBeAbsent = !isRequired(schema, name) && named["default"] === undefined;
  const dearer = priceKeys.filter(
    (key) => parsePrice(variant.pricing[key] ?? "0") > parsePrice(entry.pricing[key] ?? "0"),
  );
  return [
    ...never.map((value) => `has ${JSON.stringify(value)}, which is not a value of the field`),
    ...(mayBeAbsent ? dearer.map((key) => `has no default, and ${key} is dearer with it than without`) : []),
  ];
}

function checkVariants(entry: MediaEntry, schema: JsonSchema, complain: Complain) {
  const names = new Set<string>();
  entry.variants.forEach((variant, at) => {
    const { name, when, pricing } = variant;
    const path = ["variants", at];
    if (names.has(name)) complain([...path, "name"], `'${name}' is taken already`);
    names.add(name);
    if (priceKeys.every((key) => pricing[key] === undefined)) complain([...path, "pricing"], "has no price");
    for (const key of priceKeys)
      if (pricing[key] !== undefined && entry.pricing[key] === undefined)
        complain([...path, "pricing", key], "must be priced in the model too");
    for (const field of Object.keys(when))
      for (const fault of conditionFaults(entry, variant, field, schema)) complain([...path, "when", field], fault);
  });
}

const describe = ({ type, task }: MediaEntry): string =>
  isJsonTask(task) ? `a model with the task '${task}'` : `a model of type '${type}'`;

export function checkMedia(entry: MediaEntry, complain: Complain) {
  const fitting: readonly Task[] = tasksOf[entry.type];
  if (entry.task !== undefined && fitting.length === 0)
    complain(["task"], `does not fit a model of type '${entry.type}'`);
  if (fitting.length === 0 || (entry.type === "other" && isJsonTask(entry.task))) {
    if (entry.input_schema !== undefined) complain(["input_schema"], `does not fit ${describe(entry)}`);
    for (const name of ["units", "variants"] as const)
      if (Object.keys(entry[name]).length > 0) complain([name], `do not fit ${describe(entry)}`);
    return;
  }
  if (entry.task === undefined || !fitting.includes(entry.task))
    complain(["task"], `must be one of ${fitting.join(", ")} for a model of type '${entry.type}'`);
  if (entry.input_schema === undefined) return complain(["input_schema"], "is missing");
  if (entry.input_schema["type"] !== "object") return complain(["input_schema", "type"], "must be 'object'");
  try {
    inputCheck(entry.input_schema);
  } catch (error) {
    return complain(["input_schema"], `is not a supported schema: ${(error as Error).message}`);
  }
  checkDefaults(entry.input_schema, complain);
  checkUnits(entry, entry.input_schema, complain);
  checkVariants(entry, entry.input_schema, complain);
}
