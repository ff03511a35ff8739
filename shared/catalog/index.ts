/**
 * The catalog: which models there are, what they cost, and who serves them. One JSON file, read once at start; a model
 * without a price, or one that contradicts itself, stops the start. Sources: the specification, parts 1 and 2 ("Model");
 * ARCHITECTURE, section 5 (the bound of a call's cost); wire-details (price keys, units, output cap).
 *
 * The file (`schema.ts` has every field):
 *   elite_discount_bps  for models that name none of their own
 *   upstreams           by name: provider, address and key variables, concurrency, deadlines
 *   models              id, type, limits, features, prices as decimal strings in USD per unit, upstreams in order
 *
 * Units: a million tokens for `input`, `cached_input`, `cache_write`, `cache_write_1h`, `audio_input`, `output` and
 * `audio_output` (`1M_tokens`); one piece for `image`, `second`, `character`, `minute` and `request` (units of the same
 * names). A count whose key has no price is billed as `input` or `output` (`cache_write_1h` as `cache_write` first).
 * `tiers` price whole prompts by their length: all tokens of a prompt, and of its answer, cost what the last tier says
 * whose `above_input_tokens` the prompt exceeds.
 *
 * Money is bigint nano-USD. Prices are exact rationals; a cost is rounded once, half up. Elite prices are
 * list x (10000 - bps) / 10000, exactly.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import type { CallSize } from "#formats";
import { boundOf } from "./bound.ts";
import { costOf, type ListBand, priceBook, pricingOf } from "./prices.ts";
import { catalogFile, endpointOf, type ModelEntry, type UpstreamEntry } from "./schema.ts";
import { type Bound, CatalogError, type Model, type PriceLine, type Tier, type Upstream, type Usage } from "./types.ts";

export {
  type Bound,
  CatalogError,
  type Model,
  type ModelType,
  type PriceKey,
  type PriceLine,
  type Tier,
  type Upstream,
  type Usage,
} from "./types.ts";

export interface Catalog {
  /** By its id, `provider/model`. */
  find(id: string): Model | undefined;
  /** In the order of the file. */
  list(): readonly Model[];
  readonly upstreams: ReadonlyMap<string, Upstream>;
  /** What to hold for a call of a `text` or `embeddings` model; throws TypeError for the others. */
  bound(model: Model, size: CallSize, tier: Tier): Bound;
  /** In nano-USD. Throws RangeError for a count that is no count, or that the model has no price for. */
  cost(model: Model, usage: Usage, tier: Tier): bigint;
  /**
   * `x_pricing`: a line for each price key. A price of long prompts is a line of its own, named for the length that it
   * begins above: `input_above_200000`.
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
    const bands = [
      { aboveInputTokens: -1, pricing: entry.pricing },
      ...entry.tiers.map((tier) => ({ aboveInputTokens: tier.above_input_tokens, pricing: tier.pricing })),
    ];
    byId.set(entry.id, modelOf(entry, bands, bps));
    pricing.set(entry.id, pricingOf(bands, bps));
  }
  const list = [...byId.values()];
  return {
    find: (id) => byId.get(id),
    list: () => list,
    upstreams: new Map(Object.entries(upstreams).map(([id, entry]) => [id, upstreamOf(id, entry)])),
    bound: boundOf,
    cost: (model, usage, tier) => costOf(model.prices[tier], usage),
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

function modelOf(entry: ModelEntry, bands: readonly ListBand[], eliteDiscountBps: number): Model {
  return {
    id: entry.id,
    name: entry.name,
    ownedBy: entry.owned_by,
    type: entry.type,
    endpoint: endpointOf(entry.type),
    contextLength: entry.context_length ?? 0,
    maxOutputTokens: entry.max_output_tokens ?? 0,
    outputCapField: entry.output_cap_field ?? "max_tokens",
    eliteDiscountBps,
    features: new Set(entry.features),
    maxPartTokens: entry.max_part_tokens,
    aliases: entry.aliases,
    created: Date.parse(entry.released) / 1000,
    upstreams: entry.upstreams,
    prices: priceBook(bands, eliteDiscountBps),
  };
}

function upstreamOf(id: string, entry: UpstreamEntry): Upstream {
  return {
    id,
    provider: entry.provider,
    ...(entry.base_url !== undefined && { baseUrl: entry.base_url }),
    ...(entry.base_url_env !== undefined && { baseUrlEnv: entry.base_url_env }),
    ...(entry.key_env !== undefined && { apiKeyEnv: entry.key_env }),
    storesAnswers: entry.stores_answers,
    concurrency: entry.concurrency,
    deadlines: {
      firstByteMs: entry.first_byte_timeout_ms,
      silenceMs: entry.silence_timeout_ms,
      totalMs: entry.total_timeout_ms,
    },
  };
}
