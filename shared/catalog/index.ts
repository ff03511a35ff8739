/**
 * The catalog: which models there are, what they cost, and who serves them. One JSON file, read once at start; a model
 * without a price, or one that contradicts itself, stops the start. Sources: the specification, parts 1 and 2 ("Model");
 * ARCHITECTURE, section 5 (the bound of a call's cost); wire-details (price keys, units, output cap).
 *
 * The file (`schema.ts` has every field, `media-schema.ts` those of models for images and media):
 *   elite_discount_bps  for models that name none of their own
 *   upstreams           by name: provider, address and key variables, concurrency, deadlines
 *   models              id, type, limits, features, prices as decimal strings in USD per unit, upstreams in order
 *
 * Units: a million tokens for `input`, `cached_input`, `cache_write`, `cache_write_1h`, `audio_input`, `output` and
 * `audio_output` (`1M_tokens`); one piece for `image`, `second`, `character`, `minute` and `request` (units of the same
 * names), and for `input_image` (unit `image`): a picture that is given. A count whose key has no price is billed as
 * `input` or `output` (`cache_write_1h` as `cache_write` first).
 * `tiers` price whole prompts by their length: all tokens of a prompt, and of its answer, cost what the last tier says
 * whose `above_input_tokens` the prompt exceeds.
 *
 * A model for images or media has besides:
 *   task          the kind of call, which decides the provider's route
 *   input_schema  JSON Schema of its own parameters (for images of the body itself), held to by zod
 *   units         for every price key, how many units an input makes: what holds are worked out from, before the work.
 *                 `{field}` its value or default, `{minutes_of, bytes_per_second, max, min?}` of an uploaded recording:
 *                 these say at most how much is made, and what the provider delivers decides. `{characters_of, per?}`,
 *                 `{items_of, per?}`, `{count}`: the input alone decides, reported or not, if anything is delivered.
 *   variants      prices by input: a price key costs what the first variant says whose every `when` fits and that names
 *                 the key, else what `pricing` says. Fields that `when` lists values of are enums.
 * Defaults of the schema are sent to the provider. What it chooses by itself (`auto`) is priced as the dearest that it may.
 *
 * Money is bigint nano-USD. Prices are exact rationals; a cost is rounded once, half up; seconds and minutes have six
 * decimals. Elite prices are list x (10000 - bps) / 10000, exactly.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import type { CallSize, ModelInput } from "#formats";
import { boundOf } from "./bound.ts";
import { checkInput, checkOf } from "./input.ts";
import { boundOfUnits, costOfMedia } from "./media.ts";
import { costOf, priceBook, pricesOf, pricingOf, withRequest } from "./prices.ts";
import { catalogFile, endpointOf, type ModelEntry, type UpstreamEntry } from "./schema.ts";
import { type Bound, CatalogError, type Model, type PriceLine, type Tier, type Upstream, type Usage } from "./types.ts";
import { billed, unitsOf } from "./units.ts";

export {
  type Bound,
  CatalogError,
  type Model,
  type ModelType,
  type PriceKey,
  type PriceLine,
  type Task,
  type Tier,
  type Upstream,
  type Usage,
} from "./types.ts";

export interface Catalog {
  /** By its id, `provider/model`. */
  find(id: string): Model | undefined;
  /** By the provider's own name for it, without a provider. */
  named(alias: string): Model | undefined;
  /** In the order of the file. */
  list(): readonly Model[];
  readonly upstreams: ReadonlyMap<string, Upstream>;
  /** What to hold for a call of a `text` or `embeddings` model; throws TypeError for the others. */
  bound(model: Model, size: CallSize, tier: Tier): Bound;
  /**
   * Throws a ServiceError that names the field (`size`, or `input.duration` when `at` is "input") if the model does not
   * take these parameters; else gives them with the schema's defaults. This and the next two are for models with an input
   * schema, and throw TypeError for others.
   */
  checkInput(model: Model, input: ModelInput): ModelInput["value"];
  /** The most units that a checked input can make. `uploadBytes`: of the uploads that it names, by id. */
  units(model: Model, input: ModelInput["value"], uploadBytes: ReadonlyMap<string, number>): Usage;
  /** What to hold for a call that makes so many units at most: all of it, or the call does not run. */
  boundOfUnits(model: Model, input: ModelInput["value"], units: Usage, tier: Tier): Bound;
  /**
   * With what no provider reports: the request itself, where it has a price and the usage counts anything; of media what
   * the input alone decides (characters, input images). What was billed once may be again: it changes nothing.
   */
  billed(model: Model, usage: Usage, input?: ModelInput["value"]): Usage;
  /**
   * In nano-USD. Throws RangeError for a count that is no count, or that the model has no price for. `input` is that of a
   * media call: prices can depend on it (TypeError without it), and what it alone determines (characters, input images,
   * the request) need not stand in `usage`. For usage within the units never more than their bound.
   */
  cost(model: Model, usage: Usage, tier: Tier, input?: ModelInput["value"]): bigint;
  /**
   * `x_pricing`: a line for each price key. A price of long prompts is a line of its own, named for the length that it
   * begins above, and so is a variant's: `input_above_200000`, `image_hd`.
   */
  pricing(model: Model): Readonly<Record<string, PriceLine>>;
}

const shippedFile = fileURLToPath(new URL("models.json", import.meta.url));

/** Reads the file given, or the one shipped. Throws CatalogError with a line for each fault: whose, which field, what. */
export function loadCatalog(file: string | undefined): Catalog {
  const { elite_discount_bps, upstreams, models } = parse(file ?? shippedFile);
  const pricing = new Map<string, Readonly<Record<string, PriceLine>>>();
  const byId = new Map<string, Model>();
  for (const entry of models) {
    const bps = entry.elite_discount_bps ?? elite_discount_bps;
    byId.set(entry.id, modelOf(entry, bps));
    pricing.set(
      entry.id,
      pricingOf(
        [
          { suffix: "", pricing: entry.pricing },
          ...entry.tiers.map((tier) => ({ suffix: `_above_${tier.above_input_tokens}`, pricing: tier.pricing })),
          ...entry.variants.map((variant) => ({ suffix: `_${variant.name}`, pricing: variant.pricing })),
        ],
        bps,
      ),
    );
  }
  const list = [...byId.values()];
  const byAlias = new Map(list.flatMap((model) => model.aliases.map((alias) => [alias, model] as const)));
  return {
    find: (id) => byId.get(id),
    named: (alias) => byAlias.get(alias),
    list: () => list,
    upstreams: new Map(Object.entries(upstreams).map(([id, entry]) => [id, upstreamOf(id, entry)])),
    bound: boundOf,
    checkInput,
    units: unitsOf,
    boundOfUnits,
    billed: (model, usage, input) => (model.media ? billed(model, usage, input) : withRequest(model, usage)),
    cost: (model, usage, tier, input) =>
      model.media ? costOfMedia(model, usage, tier, input) : costOf(model.prices[tier], usage),
    pricing: (model) => pricing.get(model.id) ?? {},
  };
}

/** The environment variables that the catalog's upstreams name, for documentation. */
export function upstreamVariables(catalog: Catalog): readonly { name: string; description: string }[] {
  const variables = new Map<string, string>();
  for (const { id, baseUrl, baseUrlEnv, apiKeyEnv } of catalog.upstreams.values()) {
    if (apiKeyEnv !== undefined)
      variables.set(apiKeyEnv, `Key of the upstream '${id}'; without it its models are not listed`);
    if (baseUrlEnv !== undefined)
      variables.set(
        baseUrlEnv,
        `Address of the upstream '${id}'${baseUrl === undefined ? "" : `; default: ${baseUrl}`}`,
      );
  }
  return [...variables].map(([name, description]) => ({ name, description }));
}

function parse(file: string): z.infer<typeof catalogFile> {
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new CatalogError(`The catalog ${file} cannot be read: ${(error as Error).message}`);
  }
  const parsed = catalogFile.safeParse(content);
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map((issue) => `${whose(issue.path, content)}: ${issue.message}`);
  throw new CatalogError(`The catalog ${file} is not sound.\n  ${lines.join("\n  ")}`);
}

const named = z.looseObject({ models: z.array(z.looseObject({ id: z.string() }).catch({ id: "" })) });

/** `["models", 3, "pricing", "input"]` is "openai/gpt-5: pricing.input" to a person. */
function whose(path: readonly PropertyKey[], content: unknown): string {
  const [list, at, ...field] = path.map(String);
  if (list === undefined) return "the file";
  if (at === undefined) return list;
  const known = named.safeParse(content);
  const id = list === "models" && known.success ? known.data.models[Number(at)]?.id : undefined;
  const entry = list === "upstreams" ? `upstream ${at}` : id ? `model ${id}` : `${list}[${at}]`;
  return [entry, ...(field.length > 0 ? [field.join(".")] : [])].join(": ");
}

function modelOf(entry: ModelEntry, eliteDiscountBps: number): Model {
  const { task, input_schema, units } = entry;
  const { image_patch, page, audio_second } = entry.media_tokens;
  const bands = [
    { aboveInputTokens: -1, pricing: entry.pricing },
    ...entry.tiers.map((tier) => ({ aboveInputTokens: tier.above_input_tokens, pricing: tier.pricing })),
  ];
  const variants = entry.variants.map(({ when, pricing }) => ({ when, prices: pricesOf(pricing, eliteDiscountBps) }));
  return {
    id: entry.id,
    name: entry.name,
    ownedBy: entry.owned_by,
    type: entry.type,
    endpoint: endpointOf(entry.type),
    contextLength: entry.context_length ?? 0,
    maxOutputTokens: entry.max_output_tokens ?? 0,
    outputCapField: entry.output_cap_field ?? "max_tokens",
    hiddenReasoning: entry.hidden_reasoning ?? false,
    eliteDiscountBps,
    features: new Set(entry.features),
    maxPartTokens: entry.max_part_tokens,
    mediaTokens: {
      ...(image_patch !== undefined && { imagePatch: image_patch }),
      ...(page !== undefined && { page }),
      ...(audio_second !== undefined && { audioSecond: audio_second }),
    },
    automaticCacheWrites: entry.automatic_cache_writes ?? false,
    aliases: entry.aliases,
    created: Date.parse(entry.released) / 1000,
    upstreams: entry.upstreams,
    ...(task !== undefined && { task }),
    prices: priceBook(bands, eliteDiscountBps),
    ...(input_schema !== undefined && {
      inputSchema: input_schema,
      media: { schema: input_schema, check: checkOf(input_schema), units, variants },
    }),
  };
}

function upstreamOf(id: string, entry: UpstreamEntry): Upstream {
  return {
    id,
    provider: entry.provider,
    ...(entry.base_url !== undefined && { baseUrl: entry.base_url }),
    ...(entry.base_url_env !== undefined && { baseUrlEnv: entry.base_url_env }),
    ...(entry.key_env !== undefined && { apiKeyEnv: entry.key_env }),
    formats: entry.formats,
    storesAnswers: entry.stores_answers,
    unknownFields: entry.quirks?.unknown_fields ?? (entry.provider === "openai" ? "drop" : "pass"),
    concurrency: entry.concurrency,
    deadlines: {
      firstByteMs: entry.first_byte_timeout_ms,
      silenceMs: entry.silence_timeout_ms,
      totalMs: entry.total_timeout_ms,
    },
  };
}
