import { invalidValue } from "#errors";

/** Parsed JSON that has not been validated. */
export type JsonObject = Readonly<Record<string, unknown>>;

// Lenient readers that treat a value of another type as missing.

export const object = (value: unknown): JsonObject =>
  typeof value === "object" && value !== null ? (value as JsonObject) : {};

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const text = (value: unknown): string => (typeof value === "string" ? value : "");

export const list = (value: unknown): readonly JsonObject[] => (Array.isArray(value) ? value.map(object) : []);

export const strings = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];

export const number = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

export const byteLength = (value: unknown): number => (typeof value === "string" ? Buffer.byteLength(value) : 0);

export const isCount = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 1e9;

export const count = (value: unknown): number => (isCount(value) ? value : 0);

/** Clients send null, empty lists and empty strings for fields that they do not use. */
export const isSet = (value: unknown): boolean =>
  value !== undefined && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0);

export const omitNullish = (fields: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));

export const pick = (from: JsonObject, fields: readonly string[]): JsonObject =>
  omitNullish(Object.fromEntries(fields.map((field) => [field, from[field]])));

const tooDeep = (param: string) => invalidValue(param, `${param}: is nested too deep.`);

/** JSON.parse accepts any depth, but JSON.stringify overflows the stack. */
export function writeJson(value: unknown, param: string): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) throw tooDeep(param);
    throw error;
  }
}

/** Deeper than any meaningful request, and shallow enough for the stack of every later recursion. */
const maxDepth = 128;
/** Bounds the time for which one body blocks the event loop. */
const maxValues = 50_000;

/**
 * Returns true if JSON has more than `levels` levels. Allocates nothing, because every request is walked. An exhausted
 * budget ends the walk.
 */
export function isDeeper(value: object, levels: number, budget?: { values: number }): boolean {
  if (levels === 0) return true;
  if (Array.isArray(value)) {
    for (const each of value) if (isValueDeeper(each, levels - 1, budget)) return true;
    return false;
  }
  const fields = object(value);
  for (const field in fields) if (isValueDeeper(fields[field], levels - 1, budget)) return true;
  return false;
}

function isValueDeeper(value: unknown, levels: number, budget: { values: number } | undefined): boolean {
  // Numbers are not counted, because tokens are cheap and a request may have two million.
  if (budget && typeof value !== "number" && --budget.values < 0) return false;
  return typeof value === "object" && value !== null && isDeeper(value, levels, budget);
}

/** Refuses a body whose fields are nested too deep or contain too many values. */
export function refuseDeep(body: unknown): void {
  const fields = object(body);
  const budget = { values: maxValues };
  for (const field in fields) {
    const value = fields[field];
    if (typeof value !== "object" || value === null) continue;
    if (isDeeper(value, maxDepth, budget)) throw tooDeep(field);
    if (budget.values < 0) throw invalidValue(field, `${field}: has more than ${maxValues} values.`);
  }
}

/** A media input may have 64 levels, and the body adds further ones around it. */
const maxCanonicalDepth = 68;
const maxCanonicalValues = 100_000;

/** Writes JSON without white space and with sorted fields, so that equal values have equal texts. */
export function canonicalJson(body: unknown): string {
  let values = 0;
  const count = (more: number) => {
    values += more;
    if (values > maxCanonicalValues)
      throw invalidValue(undefined, `The body has more than ${maxCanonicalValues} values.`);
  };
  const write = (value: unknown, depth: number): string => {
    if (typeof value !== "object" || value === null) return JSON.stringify(value);
    if (depth === maxCanonicalDepth) throw invalidValue(undefined, "The body is nested too deep.");
    if (Array.isArray(value)) {
      count(value.length);
      return `[${value.map((each) => write(each, depth + 1)).join(",")}]`;
    }
    const fields = Object.entries(value);
    count(fields.length);
    fields.sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${fields.map(([name, each]) => `${JSON.stringify(name)}:${write(each, depth + 1)}`).join(",")}}`;
  };
  return write(body, 0);
}
