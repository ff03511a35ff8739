import { z } from "zod";
import type { Feature } from "#formats";
import { checkMedia, mediaFields } from "./media-schema.ts";
import { type ListPrices, parsePrice, pricePattern } from "./prices.ts";
import {
  type Complain,
  efforts,
  inputKeys,
  isJsonTask,
  type JsonTask,
  type ModelType,
  modelTypes,
  type PriceKey,
  parameters,
  priceKeys,
} from "./types.ts";
import { checkCost, checkServing, checkUpstream, servingEntry, upstreamEntry } from "./upstream-schema.ts";

const endpoints = {
  text: "/v1/chat/completions",
  image: "/v1/images/generations",
  video: "/v1/media/generations",
  audio: "/v1/media/generations",
  embeddings: "/v1/embeddings",
  other: "/v1/media/generations",
} as const satisfies Record<ModelType, string>;

const taskEndpoints = {
  moderation: "/v1/moderations",
  rerank: "/v1/rerank",
} as const satisfies Record<JsonTask, string>;

export const endpointOf = ({ type, task }: Pick<ModelEntry, "type" | "task">): string =>
  isJsonTask(task) ? taskEndpoints[task] : endpoints[type];

interface PriceKeys {
  readonly all: readonly PriceKey[];
  readonly one: readonly PriceKey[];
  readonly may: readonly PriceKey[];
}

/** Price keys of each type: `all` are required, one of `one` is required, `may` are optional. */
const keysOf = {
  text: {
    all: ["input", "output"],
    one: [],
    may: ["cached_input", "cache_write", "cache_write_1h", "audio_input", "audio_output", "request"],
  },
  embeddings: { all: ["input"], one: [], may: [] },
  image: { all: [], one: ["image", "request"], may: ["input_image"] },
  video: { all: [], one: ["second", "minute", "request"], may: ["input_image"] },
  audio: { all: [], one: ["second", "character", "minute", "request"], may: [] },
  other: { all: [], one: ["image", "second", "character", "minute", "request"], may: ["input_image"] },
} as const satisfies Record<ModelType, PriceKeys>;

/** Override the keys of the type. */
const keysOfTask = {
  moderation: { all: ["request"], one: [], may: [] },
  rerank: { all: [], one: ["input", "search"], may: [] },
} as const satisfies Record<JsonTask, PriceKeys>;

/** `service_tier` is missing, because no price key covers its cost. */
const features = [
  "tools",
  "json",
  "image",
  "audio",
  "file",
  "logprobs",
  "audio_output",
  "web_search",
  "cache_retention",
] as const satisfies readonly Feature[];
const pricedFeatures = [
  ["audio", "audio_input"],
  ["audio_output", "audio_output"],
  ["web_search", "request"],
  ["cache_retention", "cache_write_1h"],
] as const satisfies readonly (readonly [Feature, PriceKey])[];
const partKinds = ["image", "audio", "file"] as const;
const mediaUnits = [
  ["image_patch", "image"],
  ["page", "file"],
  ["audio_second", "audio"],
] as const;

const tokens = z.int().positive().max(100_000_000);
/** Aborts on a malformed price, because the checks across fields parse it. */
const price = z.string().regex(pricePattern, {
  error: "must be a decimal string in USD with at most 9 decimals, such as '2.50'",
  abort: true,
});
const pricing = z.strictObject(
  Object.fromEntries(priceKeys.map((key) => [key, price.optional()])) as Record<PriceKey, z.ZodOptional<typeof price>>,
);

const day = z.iso.date("must be YYYY-MM-DD");
/** Basis points, less than 100 percent. */
const discount = z.int().min(0).max(9_999);
const unique = (values: readonly unknown[]) => new Set(values).size === values.length;

const modelEntry = z.strictObject({
  id: z.string().regex(/^[a-z0-9][a-z0-9._-]*\/[A-Za-z0-9][A-Za-z0-9._:-]*$/, "must have the form provider/model"),
  name: z.string().min(1),
  /** One sentence. */
  description: z.string().min(1).max(300).optional(),
  owned_by: z.string().min(1),
  type: z.enum(modelTypes),
  endpoint: z.string().optional(),
  /** The day of its release, or the month if the day is unknown. */
  released: z.union([z.iso.date(), z.string().regex(/^20\d\d-(0[1-9]|1[0-2])$/)], "must be YYYY-MM-DD or YYYY-MM"),
  /** The day from which its provider calls it deprecated. It is still served. */
  deprecated_at: day.optional(),
  context_length: tokens.optional(),
  max_output_tokens: tokens.optional(),
  output_cap_field: z.enum(["max_tokens", "max_completion_tokens"]).optional(),
  /** The model bills reasoning that its stream does not fully contain. Responses calls request the reasoning state. */
  hidden_reasoning: z.boolean().optional(),
  /** Set if the model reasons: the efforts that a caller can choose, and the provider's default. */
  reasoning: z
    .strictObject({
      efforts: z.array(z.enum(efforts)).refine(unique, "names an effort twice").default([]),
      default: z.enum(efforts).optional(),
    })
    .optional(),
  /** Parameters that the model refuses or ignores although its upstreams and features promise them. */
  unsupported_parameters: z.array(z.enum(parameters)).refine(unique, "names a parameter twice").default([]),
  features: z.array(z.enum(features)).refine(unique, "names a feature twice").default([]),
  max_part_tokens: z
    .strictObject({ image: tokens.optional(), audio: tokens.optional(), file: tokens.optional() })
    .default({}),
  /** Maximum tokens of a 28 by 28 pixel patch, of the image of a page, and of a second of audio: tighter bounds. */
  media_tokens: z
    .strictObject({
      image_patch: z.number().positive().max(100).optional(),
      page: tokens.optional(),
      audio_second: z.number().positive().max(10_000).optional(),
    })
    .default({}),
  /** The provider writes prompts to a cache without being asked, and bills that as `cache_write`. */
  automatic_cache_writes: z.boolean().optional(),
  /** The provider caches no shorter prefix of a prompt. The default is 1,024. */
  min_cached_tokens: z.int().positive().optional(),
  pricing,
  /** The last tier whose length the prompt exceeds prices the whole prompt. */
  tiers: z.array(z.strictObject({ above_input_tokens: tokens, pricing })).default([]),
  /** Price keys that are intentionally 0. Any other price of 0 is refused. */
  free: z.array(z.enum(priceKeys)).refine(unique, "names a key twice").default([]),
  ...mediaFields(pricing),
  elite_discount_bps: discount.optional(),
  /** The discount of calls in batches, on what an account otherwise pays. */
  batch_discount_bps: discount.default(0),
  aliases: z
    .array(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._:-]*$/, "must be a bare name, without a slash"))
    .default([]),
  upstreams: z
    .array(servingEntry(pricing))
    .min(1)
    .refine((list) => unique(list.map((each) => `${each.upstream} ${each.model}`)), "names an upstream twice"),
});

export type ModelEntry = z.infer<typeof modelEntry>;
export type { UpstreamEntry } from "./upstream-schema.ts";

function checkPrices(entry: ModelEntry, given: ListPrices, path: readonly (string | number)[], complain: Complain) {
  const { all, one, may }: PriceKeys = isJsonTask(entry.task) ? keysOfTask[entry.task] : keysOf[entry.type];
  const fitting: ReadonlySet<PriceKey> = new Set([...all, ...one, ...may]);
  for (const key of all) if (given[key] === undefined) complain([...path, key], "is missing: the model has no price");
  if (one.length > 0 && one.every((key) => given[key] === undefined))
    complain(path, `needs a price for one of ${one.join(", ")}`);
  for (const [feature, key] of pricedFeatures)
    if (entry.features.includes(feature) && given[key] === undefined)
      complain([...path, key], `is missing: the feature '${feature}' has no price`);
  for (const key of priceKeys) {
    const amount = given[key];
    if (amount === undefined) continue;
    if (!fitting.has(key)) complain([...path, key], `does not fit a model of type '${entry.type}'`);
    const isFree = parsePrice(amount) === 0n;
    if (isFree && !entry.free.includes(key)) complain([...path, key], "is 0, and 'free' does not name it");
    if (!isFree && entry.free.includes(key)) complain([...path, key], "is not 0, but 'free' names it");
  }
  const { input, cached_input } = given;
  if (input !== undefined && cached_input !== undefined && parsePrice(cached_input) > parsePrice(input))
    complain([...path, "cached_input"], "is dearer than input");
}

function checkTiers(entry: ModelEntry, complain: Complain) {
  let below = 0;
  entry.tiers.forEach((tier, at) => {
    const path = ["tiers", at];
    if (tier.above_input_tokens <= below) complain([...path, "above_input_tokens"], "must ascend");
    below = tier.above_input_tokens;
    if (below >= (entry.context_length ?? 0))
      complain([...path, "above_input_tokens"], "is never reached: context_length ends before it");
    checkPrices(entry, tier.pricing, [...path, "pricing"], complain);
    for (const key of priceKeys)
      if ((tier.pricing[key] === undefined) !== (entry.pricing[key] === undefined))
        complain([...path, "pricing", key], "must be priced in every tier or in none");
  });
  if (entry.tiers.length > 0 && inputKeys.every((key) => entry.pricing[key] === undefined))
    complain(["tiers"], "need a price for input");
}

function checkModel(entry: ModelEntry, complain: Complain) {
  const isText = entry.type === "text";
  if (entry.endpoint !== undefined && entry.endpoint !== endpointOf(entry))
    complain(["endpoint"], `contradicts type '${entry.type}', which is served by ${endpointOf(entry)}`);
  if (entry.task === "moderation" && !entry.free.includes("request"))
    complain(["free"], "must name 'request': moderations cost nothing");
  if ((isText || entry.type === "embeddings" || isJsonTask(entry.task)) && entry.context_length === undefined)
    complain(["context_length"], "is missing");
  if (isText && entry.max_output_tokens === undefined) complain(["max_output_tokens"], "is missing");
  for (const field of ["max_output_tokens", "output_cap_field", "hidden_reasoning", "reasoning"] as const)
    if (!isText && entry[field] !== undefined) complain([field], `does not fit a model of type '${entry.type}'`);
  if ((entry.max_output_tokens ?? 0) >= (entry.context_length ?? Number.POSITIVE_INFINITY))
    complain(["max_output_tokens"], "must be less than context_length, which holds the prompt too");
  if (entry.deprecated_at !== undefined && entry.deprecated_at < entry.released)
    complain(["deprecated_at"], "is before the release");
  if (entry.reasoning?.default !== undefined && !entry.reasoning.efforts.includes(entry.reasoning.default))
    complain(["reasoning", "default"], "is not among the efforts");
  if (!isText && entry.unsupported_parameters.length > 0)
    complain(["unsupported_parameters"], `do not fit a model of type '${entry.type}'`);
  if (!isText && entry.features.length > 0) complain(["features"], `do not fit a model of type '${entry.type}'`);
  for (const field of ["default_response_format", "default_edit_format"] as const)
    if (entry.type !== "image" && entry[field] !== undefined)
      complain([field], `does not fit a model of type '${entry.type}'`);
  for (const kind of partKinds)
    if (entry.features.includes(kind) !== (entry.max_part_tokens[kind] !== undefined))
      complain(["max_part_tokens", kind], `and the feature '${kind}' need each other`);
  for (const [unit, kind] of mediaUnits)
    if (entry.media_tokens[unit] !== undefined && entry.max_part_tokens[kind] === undefined)
      complain(["media_tokens", unit], `needs the feature '${kind}'`);
  if (entry.automatic_cache_writes && entry.pricing.cache_write === undefined)
    complain(["automatic_cache_writes"], "need a price for cache_write");
  for (const key of entry.free)
    if (entry.pricing[key] === undefined) complain(["free"], `names '${key}', which has no price`);
  checkPrices(entry, entry.pricing, ["pricing"], complain);
  checkTiers(entry, complain);
  checkMedia(entry, complain);
  entry.variants.forEach((variant, at) => {
    checkPrices(entry, { ...entry.pricing, ...definedPrices(variant.pricing) }, ["variants", at, "pricing"], complain);
  });
}

const definedPrices = (prices: ListPrices): ListPrices =>
  Object.fromEntries(Object.entries(prices).filter(([, price]) => price !== undefined));

/** Returns a price for each key that the model or one of its variants has. */
const pricedOf = ({ pricing, variants }: ModelEntry): ListPrices =>
  Object.assign({}, ...[...variants.map((variant) => variant.pricing), pricing].map(definedPrices));

/** The catalog file. The path of every issue starts with the model or upstream at fault. */
export const catalogFile = z
  .strictObject({
    /** The default for models that set none. */
    elite_discount_bps: discount,
    upstreams: z.record(z.string().regex(/^[a-z0-9][a-z0-9-]*$/, "must be a short lower-case name"), upstreamEntry),
    models: z.array(modelEntry).min(1),
  })
  .superRefine((file, context) => {
    for (const [id, entry] of Object.entries(file.upstreams))
      checkUpstream(entry, (path, message) =>
        context.addIssue({ code: "custom", path: ["upstreams", id, ...path], message }),
      );
    const names = new Set<string>();
    file.models.forEach((entry, at) => {
      const complain: Complain = (path, message) =>
        context.addIssue({ code: "custom", path: ["models", at, ...path], message });
      checkModel(entry, complain);
      for (const name of [entry.id, ...entry.aliases]) {
        if (names.has(name)) complain([name === entry.id ? "id" : "aliases"], `'${name}' is taken already`);
        names.add(name);
      }
      entry.upstreams.forEach((served, each) => {
        const upstream = Object.hasOwn(file.upstreams, served.upstream) ? file.upstreams[served.upstream] : undefined;
        const complainOfServing: Complain = (path, message) => complain(["upstreams", each, ...path], message);
        if (served.cost) checkCost(pricedOf(entry), served.cost, complainOfServing);
        if (upstream) checkServing(entry, served, upstream, complainOfServing);
        else complainOfServing(["upstream"], `'${served.upstream}' is not among the catalog's upstreams`);
      });
    });
  });
