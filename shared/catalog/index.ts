/**
 * The catalog: which models there are, what they cost, and who serves them. One JSON file, read once at start. A model without a
 * price, or one that contradicts itself, stops the start. Sources: docs/api/inference.md ("Model"), docs/api/wire-details.md
 * (price keys, units, output cap).
 *
 * The file (`schema.ts` has every field, `media-schema.ts` those of models for images and media):
 *   elite_discount_bps  the default for models without their own
 *   upstreams           by name: provider, address and key variables, concurrency, timeouts
 *   models              id, type, limits, features, prices as decimal strings in USD per unit, upstreams in order
 *
 * Units: a million tokens for `input`, `cached_input`, `cache_write`, `cache_write_1h`, `audio_input`, `output` and
 * `audio_output` (`1M_tokens`); one piece for `image`, `second`, `character`, `minute`, `request` and `input_image`, an image in
 * the input (unit `image`). A count whose key has no price is billed as `input` or `output` (`cache_write_1h` as `cache_write`
 * first). `tiers` depend on the length of the prompt: the last tier whose `above_input_tokens` the prompt exceeds prices all
 * tokens of the prompt and of its answer.
 *
 * A model for images or media also has:
 *   task          the kind of call, which selects the provider's route
 *   input_schema  JSON Schema of its parameters (for images those of the body itself), enforced by zod
 *   units         for every price key the number of units that an input makes, from which holds are computed. `{field}` (its
 *                 value or default) and `{minutes_of, bytes_per_second, max, min?}` (of an uploaded recording) are upper bounds;
 *                 the delivered number is billed. `{characters_of, per?}`, `{items_of, per?}` and `{count}` are determined by
 *                 the input, reported or not, if anything is delivered.
 *   variants      prices by input. The price of a key is that of the first variant whose every `when` matches and that has the
 *                 key, else that of `pricing`. Fields for which `when` lists values are enums.
 * Defaults of the schema are sent to the provider. A value that the provider chooses (`auto`) has the highest price it can have.
 *
 * Money is bigint nano-USD. Prices are exact rationals. A cost is rounded once, half up; seconds and minutes have six decimals.
 * Elite prices are exactly list x (10000 - bps) / 10000.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import type { CallSize, ModelInput } from "#formats";
import { boundOfTokens } from "./bound.ts";
import { checkInput, inputCheck } from "./input.ts";
import { billed, boundOfUnits, costOfMedia, unitsOf } from "./media.ts";
import { costOf, priceBook, pricesOf, pricingOf, withRequest } from "./prices.ts";
import { catalogFile, endpointOf, type ModelEntry, type UpstreamEntry } from "./schema.ts";
import { type Bound, CatalogError, type Model, type PriceLine, type Tier, type Upstream, type Usage } from "./types.ts";

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
  /** By the provider's own name for it. */
  named(alias: string): Model | undefined;
  /** In the order of the file. */
  list(): readonly Model[];
  readonly upstreams: ReadonlyMap<string, Upstream>;
  /** The bound of a call of a `text` or `embeddings` model. Throws TypeError for other models. */
  bound(model: Model, size: CallSize, tier: Tier): Bound;
  /**
   * Returns the parameters with the schema's defaults, or throws a ServiceError that names the field (`size`, or
   * `input.duration` when `at` is "input"). This and the next two are for models with an input schema, and throw TypeError for
   * others.
   */
  checkInput(model: Model, input: ModelInput): ModelInput["value"];
  /** The most units that a checked input can make. `uploadBytes`: sizes of the uploads in the input, by id. */
  units(model: Model, input: ModelInput["value"], uploadBytes: ReadonlyMap<string, number>): Usage;
  /** The bound of a call that makes at most these units. */
  boundOfUnits(model: Model, input: ModelInput["value"], units: Usage, tier: Tier): Bound;
  /**
   * Adds what no provider reports: the request itself, if it has a price and the usage counts anything; for media what the
   * input determines (characters, input images). Idempotent.
   */
  billed(model: Model, usage: Usage, input?: ModelInput["value"]): Usage;
  /**
   * In nano-USD. Throws RangeError for a malformed count, or one without a price. Prices of media can depend on `input`
   * (TypeError without it), and counts that it determines need not be in `usage`. Usage within the units never costs more than
   * their bound.
   */
  cost(model: Model, usage: Usage, tier: Tier, input?: ModelInput["value"]): bigint;
  /**
   * `x_pricing`: a line for each price key. Tiers and variants have lines of their own: `input_above_200000`, `image_hd`.
   */
  pricing(model: Model): Readonly<Record<string, PriceLine>>;
}

const shippedFile = fileURLToPath(new URL("models.json", import.meta.url));

/** Reads a file, by default the shipped one. Throws CatalogError with a line for each fault. */
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
    bound: boundOfTokens,
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
  const lines = parsed.error.issues.map((issue) => `${describePath(issue.path, content)}: ${issue.message}`);
  throw new CatalogError(`The catalog ${file} is not valid.\n  ${lines.join("\n  ")}`);
}

const withIds = z.looseObject({ models: z.array(z.looseObject({ id: z.string() }).catch({ id: "" })) });

/** `["models", 3, "pricing", "input"]` becomes "model openai/gpt-5: pricing.input". */
function describePath(path: readonly PropertyKey[], content: unknown): string {
  const [list, at, ...field] = path.map(String);
  if (list === undefined) return "the file";
  if (at === undefined) return list;
  const known = withIds.safeParse(content);
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
      media: { schema: input_schema, check: inputCheck(input_schema), units, variants },
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
