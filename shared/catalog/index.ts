/**
 * The catalog: which models there are, what they cost, and who serves them. One JSON file, read once at start. A model
 * without a price, or with contradictory settings, stops the start. Sources: docs/api/inference.md ("Model"),
 * docs/api/wire-details.md (price keys, units, output cap).
 *
 * `schema.ts` has every field of the file, `media-schema.ts` those of models for images and media. An overlay is merged
 * over it by id (`overlay.ts`). Modalities and parameters are derived (`capabilities.ts`).
 *
 * Units: a million tokens for `input`, `cached_input`, `cache_write`, `cache_write_1h`, `audio_input`, `output` and
 * `audio_output` (`1M_tokens`); one piece for `image`, `second`, `character`, `minute`, `request`, `search` (a query
 * with up to 100 documents, of rerank models) and `input_image`, an image in the input (unit `image`). A count whose key has
 * no price is billed as `input` or `output` (`cache_write_1h` as `cache_write` first). `tiers` depend on the length of
 * the prompt: the last tier whose `above_input_tokens` the prompt exceeds prices all tokens of the prompt and of its
 * response.
 *
 * A model for images or media also has:
 *   task          the kind of call, which selects the provider's route
 *   input_schema  JSON Schema of its parameters (for images those of the body itself), enforced by zod
 *   units         for every price key the number of units that an input makes, from which holds are computed. `{field}`
 *                 (its value or default) and `{minutes_of, bytes_per_second, max, min?}` (of an uploaded recording) are
 *                 upper bounds; the delivered number is billed. `{characters_of}`, `{started_minutes_of}` (a length in
 *                 ms), `{items_of, per?}` and `{count}` are determined by the input, reported or not, if anything is
 *                 delivered.
 *   default_response_format  for images, if it is not `url`: the format that clients of the provider's own API expect;
 *                 default_edit_format likewise for edits
 *   variants      prices by input. The price of a key is that of the first variant whose every `when` matches and that
 *                 has the key, otherwise that of `pricing`. Fields for which `when` lists values are enums.
 * Defaults of the schema are sent to the provider. A value that the provider chooses (`auto`) has the highest price it
 * can have.
 *
 * Money is bigint nano-USD. Prices are exact rationals. A cost is rounded once, half up; seconds and minutes have six
 * decimals. Elite prices are exactly list x (10000 - bps) / 10000.
 */
import { createHash } from "node:crypto";
import { type Environment, withSecretFiles } from "#platform/process/secret-files";
import { boundOfTokens } from "./bound.ts";
import type { Input } from "./input.ts";
import { billed, boundOfUnits, checkInput, costOfMedia, ignoredInput, unitsOf } from "./media.ts";
import { type Model, modelOf, upstreamOf } from "./model.ts";
import { costOf, withRequest } from "./prices.ts";
import { type CatalogEntries, readCatalog } from "./read-catalog.ts";
import type { Tier, Usage } from "./types.ts";

export type { Input } from "./input.ts";
export type { Model, Upstream } from "./model.ts";
export { noQuirks, type Quirks } from "./quirks.ts";
export { type CatalogEntries, readCatalog } from "./read-catalog.ts";
export {
  type AddressPart,
  type AddressParts,
  type Bound,
  CatalogError,
  inputKeys,
  modalities,
  outputKeys,
  type PriceKey,
  pieceKeys,
  type Task,
  type Tier,
  tokenKeys,
  tokensOf,
  type Usage,
} from "./types.ts";
export { cloudParts, filledAddress, regionPattern } from "./upstream-schema.ts";

export type Catalog = ReturnType<typeof catalogOf>;

const compare = (a: string, b: string) => (a < b ? -1 : 1);

const withSortedKeys = (_: string, value: unknown): unknown =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => compare(a, b)))
    : value;

/**
 * Identifies the content of a catalog: 12 hexadecimal digits of a SHA-256. White space and the order of keys and models
 * do not count; the order of a model's upstreams does.
 */
export function catalogHash(catalog: CatalogEntries): string {
  const models = catalog.models.toSorted((a, b) => compare(a.id, b.id));
  const text = JSON.stringify({ ...catalog, models }, withSortedKeys);
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}

/** Removes the upstreams that run inside the worker, and the models that only they serve. */
function withoutLocal({ upstreams, models, ...others }: CatalogEntries): CatalogEntries {
  const remote = Object.entries(upstreams).filter(([, { provider }]) => provider !== "local");
  const names = new Set(remote.map(([name]) => name));
  const served = models.map((model) => ({
    ...model,
    upstreams: model.upstreams.filter(({ upstream }) => names.has(upstream)),
  }));
  return {
    ...others,
    upstreams: Object.fromEntries(remote),
    models: served.filter((model) => model.upstreams.length > 0),
  };
}

/**
 * Reads a file, the shipped one by default, and its overlay. Throws CatalogError with a line for each fault. Without
 * `localModels` the models that run inside the worker do not exist.
 */
export function loadCatalog(file: string | undefined, overlay?: string, { localModels = true } = {}): Catalog {
  if (file !== undefined || overlay !== undefined) return catalogOf(readCatalog(file, overlay), localModels);
  const catalog = shipped.get(localModels) ?? catalogOf(readCatalog(), localModels);
  shipped.set(localModels, catalog);
  return catalog;
}

/** Keyed by `localModels`. The shipped catalog never changes, and one process may be both API and worker. */
const shipped = new Map<boolean, Catalog>();

function catalogOf(entries: CatalogEntries, localModels: boolean) {
  const { elite_discount_bps, upstreams, models } = localModels ? entries : withoutLocal(entries);
  const list: readonly Model[] = models.map((entry) =>
    modelOf(entry, entry.elite_discount_bps ?? elite_discount_bps, upstreams),
  );
  const byId = new Map(list.map((model) => [model.id, model]));
  const byAlias = new Map(list.flatMap((model) => model.aliases.map((alias) => [alias, model])));
  return {
    /** Equal for equivalent catalogs, so that processes can compare theirs. */
    hash: catalogHash(entries),
    /** Finds a model by its id, `provider/model`. */
    find: (id: string) => byId.get(id),
    /** Finds a model by the provider's own name for it. */
    named: (alias: string) => byAlias.get(alias),
    list: () => list,
    upstreams: new Map(Object.entries(upstreams).map(([id, entry]) => [id, upstreamOf(id, entry)])),
    /** The maximum cost of a call to a model without an input schema. Throws TypeError for other models. */
    bound: boundOfTokens,
    /**
     * Returns the cost in a batch of a call that would otherwise cost this amount. Rounds up. `providerBps`: the discount of a
     * provider's own batch, in which it runs; it applies if it is larger than the model's.
     */
    inBatch: ({ batchDiscountBps }: Pick<Model, "batchDiscountBps">, nanoUsd: bigint, providerBps = 0): bigint =>
      (nanoUsd * BigInt(10_000 - Math.max(batchDiscountBps, providerBps)) + 9_999n) / 10_000n,
    // The next four are for models with an input schema and throw TypeError for others.
    checkInput,
    ignoredInput,
    units: unitsOf,
    boundOfUnits,
    /**
     * Adds the counts that no provider reports: the request itself, if it has a price and the usage counts anything;
     * for media, the counts that the input determines (characters, input images). Idempotent.
     */
    billed: (model: Model, usage: Usage, input?: Input): Usage =>
      model.media ? billed(model, usage, input) : withRequest(model, usage),
    /**
     * Returns the cost in nano-USD. Throws RangeError for a malformed count, or one without a price. Prices of media
     * can depend on `input` (TypeError without it), and counts that it determines may be missing from `usage`. Usage
     * within the units never costs more than their bound.
     */
    cost: (model: Model, usage: Usage, tier: Tier, input?: Input): bigint =>
      model.media ? costOfMedia(model, usage, tier, input) : costOf(model.prices[tier], usage),
  };
}

interface UpstreamVariable {
  readonly name: string;
  readonly description: string;
  readonly secret: boolean;
}

export function upstreamVariables(catalog: Pick<Catalog, "upstreams">): readonly UpstreamVariable[] {
  const variables = new Map<string, UpstreamVariable>();
  const users = (variable: (upstream: ReturnType<typeof upstreamOf>) => string | undefined, name: string): string => {
    const ids = [...catalog.upstreams.values()].filter((each) => variable(each) === name).map(({ id }) => `'${id}'`);
    return `upstream${ids.length > 1 ? "s" : ""} ${ids.join(" and ")}`;
  };
  for (const { baseUrl, baseUrlEnv, apiKeyEnv, addressEnv } of catalog.upstreams.values()) {
    for (const part of ["resource", "project"] as const) {
      const name = addressEnv[part];
      if (name === undefined) continue;
      const description = `The ${part} in the address of the ${users((each) => each.addressEnv[part], name)}`;
      variables.set(name, { name, description, secret: false });
    }
    if (apiKeyEnv !== undefined) {
      const secret = apiKeyEnv.endsWith("_CREDENTIALS") ? "Credential" : "API key";
      const description = `${secret} of the ${users((each) => each.apiKeyEnv, apiKeyEnv)}; without it, its models are not listed`;
      variables.set(apiKeyEnv, { name: apiKeyEnv, description, secret: true });
    }
    if (baseUrlEnv !== undefined) {
      const initial = baseUrl === undefined ? "" : `; default: ${baseUrl}`;
      const description = `Address of the ${users((each) => each.baseUrlEnv, baseUrlEnv)}${initial}`;
      variables.set(baseUrlEnv, { name: baseUrlEnv, description, secret: false });
    }
  }
  return [...variables.values()];
}

/** Returns the environment with upstream keys read from the files that it names. */
export const withUpstreamKeys = (env: Environment, catalog: Pick<Catalog, "upstreams">): Environment =>
  withSecretFiles(
    env,
    upstreamVariables(catalog).flatMap(({ name, secret }) => (secret ? [name] : [])),
  );
