import type { ModelInput } from "#formats";
import type { Media, Model, PriceKey, UnitRule, Usage } from "./types.ts";

export type Input = ModelInput["value"];
export type JsonSchema = Readonly<Record<string, unknown>>;

const record = (value: unknown): JsonSchema =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonSchema) : {};

/** The schema of one field; undefined if the input schema does not name it. */
export function fieldSchema(schema: JsonSchema, field: string): JsonSchema | undefined {
  const properties = record(schema["properties"]);
  return Object.hasOwn(properties, field) ? record(properties[field]) : undefined;
}

/** What the caller gave, else the field's default. */
export const valueOf = (schema: JsonSchema, input: Input, field: string): unknown =>
  Object.hasOwn(input, field) ? input[field] : fieldSchema(schema, field)?.["default"];

/** A count as providers take it, `8`, `"8"` or `"8s"`; undefined if it is none. */
export function countOf(value: unknown): number | undefined {
  const count = typeof value === "string" && /^\d{1,9}s?$/.test(value) ? Number.parseInt(value, 10) : value;
  return typeof count === "number" && Number.isFinite(count) && count > 0 ? count : undefined;
}

type MadeRule = Extract<UnitRule, { field: string } | { minutes_of: string }>;
type GivenRule = Exclude<UnitRule, MadeRule>;

/** What the input alone determines; the other rules say at most how much can be made. */
const isGiven = (rule: UnitRule): rule is GivenRule => !("field" in rule) && !("minutes_of" in rule);

/** To the millionth, and never less: it is what is held. */
const ceil = (count: number) => Math.ceil(count * 1e6) / 1e6;

const itemsIn = (value: unknown): number => (value === undefined ? 0 : Array.isArray(value) ? value.length : 1);

function given({ schema }: Media, rule: GivenRule, input: Input): number {
  if ("count" in rule) return rule.count;
  if ("items_of" in rule) return rule.items_of.reduce((sum, field) => sum + itemsIn(valueOf(schema, input, field)), 0);
  const text = valueOf(schema, input, rule.characters_of);
  return typeof text === "string" ? Array.from(text).length : 0;
}

function most({ schema }: Media, rule: MadeRule, input: Input, uploadBytes: ReadonlyMap<string, number>): number {
  if ("minutes_of" in rule) {
    const bytes = uploadBytes.get(String(valueOf(schema, input, rule.minutes_of)));
    const minutes = bytes === undefined ? rule.max : Math.min(rule.max, bytes / rule.bytes_per_second / 60);
    return ceil(minutes);
  }
  const count = countOf(valueOf(schema, input, rule.field));
  if (count === undefined) throw new RangeError(`'${rule.field}' is no count: the input was not checked`);
  return count;
}

export function mediaOf(model: Model): Media {
  if (model.media === undefined) throw new TypeError(`${model.id} is billed by tokens, not by what an input makes`);
  return model.media;
}

type Counts = Partial<Record<PriceKey, number>>;
const rulesOf = (media: Media) => Object.entries(media.units) as readonly [PriceKey, UnitRule][];

export function unitsOf(model: Model, input: Input, uploadBytes: ReadonlyMap<string, number>): Usage {
  const media = mediaOf(model);
  const made: Counts = {};
  for (const [key, rule] of rulesOf(media)) if (!isGiven(rule)) made[key] = most(media, rule, input, uploadBytes);
  return billed(model, made, input);
}

/**
 * The usage with what a provider does not report but the input determines: characters, input images, the request itself.
 * If nothing was made they count nothing either. Of a recording at least the minutes that are billed at least. Where the
 * input determines it all, what a provider reports besides is not billed.
 */
export function billed(model: Model, usage: Usage, input: Input | undefined): Usage {
  const media = mediaOf(model);
  const rules = rulesOf(media);
  const made = rules.filter(([, rule]) => !isGiven(rule));
  // A song that is priced by the call has a length all the same.
  const counted = Object.entries(usage).filter(([key]) => made.length > 0 || key in media.units);
  const out: Counts = Object.fromEntries(counted);
  if (made.length > 0 && made.every(([key]) => !usage[key])) return out;
  for (const [key, rule] of rules) {
    if ("minutes_of" in rule && rule.min !== undefined) out[key] = Math.max(out[key] ?? 0, rule.min);
    if (!isGiven(rule) || out[key] !== undefined) continue;
    if (input === undefined) throw new TypeError(`The cost of ${model.id} depends on its input`);
    const count = given(media, rule, input) * ("per" in rule && rule.per ? (usage[rule.per] ?? 0) : 1);
    if (count > 0) out[key] = count;
  }
  return out;
}
