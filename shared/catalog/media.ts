import { z } from "zod";
import type { ServiceError } from "#errors";
import { invalidFrom, type ModelInput } from "#formats";
import { isSet } from "#json";
import { countOf, fieldSchema, type Input, type JsonSchema, valueOf } from "./input.ts";
import type { Model } from "./model.ts";
import { costAt } from "./prices.ts";
import type { Bound, Condition, PriceKey, Prices, Tier, UnitRule, Usage } from "./types.ts";

type Media = NonNullable<Model["media"]>;

function mediaOf(model: Model): Media {
  if (model.media === undefined) throw new TypeError(`${model.id} is billed by tokens, not by its input`);
  return model.media;
}

/** Returns the values of a union of literals, which zod makes from an `enum` of numbers. */
function valuesOf(issue: z.core.$ZodIssueInvalidUnion): readonly unknown[] | undefined {
  const inner = issue.errors.flat();
  const values = inner.flatMap((each) => (each.code === "invalid_value" && each.path.length === 0 ? each.values : []));
  return values.length === inner.length ? values : undefined;
}

/** Names the allowed values or the description, where zod would name the first value or a regular expression. */
function explained(issue: z.core.$ZodIssue, schema: JsonSchema): z.core.$ZodIssue {
  const values = issue.code === "invalid_union" ? valuesOf(issue) : undefined;
  if (values) return { ...issue, code: "custom", message: `Invalid option: expected one of ${values.join("|")}` };
  const [field] = issue.path;
  if (issue.code !== "invalid_format" || issue.path.length !== 1 || typeof field !== "string") return issue;
  const description = fieldSchema(schema, field)?.["description"];
  return typeof description === "string" ? { ...issue, message: `Invalid string: expected ${description}` } : issue;
}

function invalid(error: z.ZodError, schema: JsonSchema, at: ModelInput["at"]): ServiceError {
  const issues = error.issues.map((issue) => explained(issue, schema));
  return invalidFrom(
    new z.ZodError(issues.map((issue) => ({ ...issue, path: at ? [at, ...issue.path] : issue.path }))),
  );
}

/** Fields of OpenAI's image API that request a manner of drawing, which a model may not have. */
const hints = ["background", "input_fidelity", "moderation", "output_compression", "output_format", "quality", "style"];

/** Fields of that API for which `auto` means the model's own choice. */
const automatic = ["background", "moderation", "quality", "size"];

const isHint = (schema: JsonSchema, field: string) => hints.includes(field) && fieldSchema(schema, field) === undefined;

/** Returns true if `auto` is equivalent to no value, because the field has no such value in the model's schema. */
function isOmitted(schema: JsonSchema, field: string, value: unknown): boolean {
  if (value !== "auto" || !automatic.includes(field)) return false;
  const values = fieldSchema(schema, field)?.["enum"];
  return !(Array.isArray(values) && values.includes("auto"));
}

/** Returns the body without fields that the model does not accept and values that equal its default behavior. */
const withoutHints = (schema: JsonSchema, body: Input): Input =>
  Object.fromEntries(
    Object.entries(body).filter(([field, value]) => !isHint(schema, field) && !isOmitted(schema, field, value)),
  );

/** Some single-image models call the field `image_url`; the routes call it `image`. */
function withOwnImageField(schema: JsonSchema, body: Input): Input {
  const { image, ...others } = body;
  const isOwn = fieldSchema(schema, "image") !== undefined || fieldSchema(schema, "image_url") === undefined;
  if (image === undefined || isOwn || isSet(body["image_url"])) return body;
  return { ...others, image_url: Array.isArray(image) && image.length === 1 ? (image[0] as unknown) : image };
}

/**
 * Returns the parameters with the schema's defaults, for images without hints that the model does not accept. Throws a
 * ServiceError that names the field (`size`, or `input.duration` when `at` is "input").
 */
export function checkInput(model: Model, { value, at }: ModelInput): Input {
  const { check, schema } = mediaOf(model);
  const parsed = check.safeParse(at === "" ? withoutHints(schema, withOwnImageField(schema, value)) : value);
  if (!parsed.success) throw invalid(parsed.error, schema, at);
  return parsed.data as Input;
}

/** Returns the fields of an image body that have no effect on the model, for `x-ignored-params`. */
export function ignoredInput(model: Model, body: Input): readonly string[] {
  const { schema } = mediaOf(model);
  return [...hints.filter((field) => isHint(schema, field)), "user"].filter((field) => isSet(body[field]));
}

type OutputRule = Extract<UnitRule, { field: string } | { minutes_of: string }>;
type InputRule = Exclude<UnitRule, OutputRule>;

/** Returns true if the input alone determines the count. Other rules only bound how much the model can make. */
const isInputRule = (rule: UnitRule): rule is InputRule => !("field" in rule) && !("minutes_of" in rule);

/** Rounds up to the sixth decimal, because the result bounds a hold. */
const ceil = (count: number) => Math.ceil(count * 1e6) / 1e6;

const itemsIn = (value: unknown): number => (value === undefined ? 0 : Array.isArray(value) ? value.length : 1);

function countInput({ schema }: Media, rule: InputRule, input: Input): number {
  if ("count" in rule) return rule.count;
  if ("started_minutes_of" in rule) {
    const lengthMs = countOf(valueOf(schema, input, rule.started_minutes_of));
    if (lengthMs === undefined)
      throw new RangeError(`'${rule.started_minutes_of}' is not a length: it was not checked`);
    return Math.ceil(lengthMs / 60_000);
  }
  if ("items_of" in rule) return rule.items_of.reduce((sum, field) => sum + itemsIn(valueOf(schema, input, field)), 0);
  const text = valueOf(schema, input, rule.characters_of);
  return typeof text === "string" ? Array.from(text).length : 0;
}

function maxOutput(
  { schema }: Media,
  rule: OutputRule,
  input: Input,
  uploadBytes: ReadonlyMap<string, number>,
): number {
  if ("minutes_of" in rule) {
    const bytes = uploadBytes.get(String(valueOf(schema, input, rule.minutes_of)));
    const minutes = bytes === undefined ? rule.max : Math.min(rule.max, bytes / rule.bytes_per_second / 60);
    return ceil(minutes);
  }
  const count = countOf(valueOf(schema, input, rule.field));
  if (count === undefined) throw new RangeError(`'${rule.field}' is not a count: the input was not checked`);
  return count;
}

type Counts = Partial<Record<PriceKey, number>>;
const rulesOf = (media: Media) => Object.entries(media.units) as readonly [PriceKey, UnitRule][];

/** Returns the most units that a checked input can make. `uploadBytes` has the sizes of its uploads, by id. */
export function unitsOf(model: Model, input: Input, uploadBytes: ReadonlyMap<string, number>): Usage {
  const media = mediaOf(model);
  const output: Counts = {};
  for (const [key, rule] of rulesOf(media))
    if (!isInputRule(rule)) output[key] = maxOutput(media, rule, input, uploadBytes);
  return billed(model, output, input);
}

/**
 * Adds to the reported usage the counts that the input determines (characters, input images, the request itself) and
 * raises minutes to the billed minimum. Adds nothing if the model made nothing. Where the input determines every count,
 * other reported counts are not billed.
 */
export function billed(model: Model, usage: Usage, input: Input | undefined): Usage {
  const media = mediaOf(model);
  const rules = rulesOf(media);
  const outputRules = rules.filter(([, rule]) => !isInputRule(rule));
  const counted = Object.entries(usage).filter(([key]) => outputRules.length > 0 || key in media.units);
  const out: Counts = Object.fromEntries(counted);
  if (outputRules.length > 0 && outputRules.every(([key]) => !usage[key])) return out;
  for (const [key, rule] of rules) {
    if ("minutes_of" in rule && rule.min !== undefined) out[key] = Math.max(out[key] ?? 0, rule.min);
    if (!isInputRule(rule) || out[key] !== undefined) continue;
    if (input === undefined) throw new TypeError(`The cost of ${model.id} depends on its input`);
    const count = countInput(media, rule, input) * ("per" in rule && rule.per ? (usage[rule.per] ?? 0) : 1);
    if (count > 0) out[key] = count;
  }
  return out;
}

function meets({ schema }: Media, input: Input, field: string, condition: Condition): boolean {
  const value = valueOf(schema, input, field);
  if ("present" in condition) return condition.present === (value !== undefined);
  return condition.some((each) => each === value);
}

function pricesFor(model: Model, tier: Tier, input: Input | undefined): Prices {
  const base = model.prices[tier][0].prices;
  const media = mediaOf(model);
  if (media.variants.length === 0) return base;
  if (input === undefined) throw new TypeError(`The cost of ${model.id} depends on its input`);
  const matching = media.variants.filter(({ when }) =>
    Object.entries(when).every(([field, condition]) => meets(media, input, field, condition)),
  );
  // Reversed, so that the first matching variant overwrites the others.
  return Object.assign({}, base, ...matching.toReversed().map(({ prices }) => prices[tier]));
}

export const costOfMedia = (model: Model, usage: Usage, tier: Tier, input: Input | undefined): bigint =>
  costAt(pricesFor(model, tier, input), billed(model, usage, input));

export function boundOfUnits(model: Model, input: Input, units: Usage, tier: Tier): Bound {
  const nanoUsd = costOfMedia(model, units, tier, input);
  // All or nothing: an output cap does not change the cost of media.
  return {
    maxNanoUsd: nanoUsd,
    minNanoUsd: nanoUsd,
    inputNanoUsd: nanoUsd,
    inputTokens: 0,
    outputCap: 0,
    isCapNamed: false,
    capFor: () => 0,
  };
}
