import type { Feature } from "#formats";
import { inputModalities, outputModalities, reasoningOf, supportedParameters } from "./capabilities.ts";
import { inputCheck } from "./input.ts";
import { onceReadSaves, priceBook, pricesOf, pricingOf, upstreamCostOf } from "./prices.ts";
import { noQuirks } from "./quirks.ts";
import { endpointOf, type ModelEntry, type UpstreamEntry } from "./schema.ts";

export type Model = ReturnType<typeof modelOf>;
export type Upstream = ReturnType<typeof upstreamOf>;

/** Parses the entry of a model: its prices become amounts, its input schema becomes a check. */
export function modelOf(
  entry: ModelEntry,
  eliteDiscountBps: number,
  upstreams: Readonly<Record<string, UpstreamEntry>>,
) {
  const { task, input_schema, units, media_tokens } = entry;
  const bands = [
    { aboveInputTokens: -1, pricing: entry.pricing },
    ...entry.tiers.map((tier) => ({ aboveInputTokens: tier.above_input_tokens, pricing: tier.pricing })),
  ];
  const variants = entry.variants.map(({ when, pricing }) => ({ when, prices: pricesOf(pricing, eliteDiscountBps) }));
  const prices = priceBook(bands, eliteDiscountBps);
  const features: ReadonlySet<Feature> = new Set(entry.features);
  return {
    /** `provider/model`, slash included. */
    id: entry.id,
    name: entry.name,
    description: entry.description ?? "",
    ownedBy: entry.owned_by,
    type: entry.type,
    /** The path of the main endpoint that serves the model. */
    endpoint: endpointOf(entry),
    /** Maximum tokens of prompt and response together. For embeddings, the maximum of one input; 0 for media. */
    contextLength: entry.context_length ?? 0,
    /** 0 for models that produce no text. */
    maxOutputTokens: entry.max_output_tokens ?? 0,
    outputCapField: entry.output_cap_field ?? "max_tokens",
    hiddenReasoning: entry.hidden_reasoning ?? false,
    batchDiscountBps: entry.batch_discount_bps,
    reasoning: reasoningOf(entry),
    inputModalities: inputModalities(entry),
    outputModalities: outputModalities(entry),
    supportedParameters: supportedParameters(entry, upstreams),
    eliteDiscountBps,
    features,
    /** Maximum tokens of one part. Parts of a missing kind are refused. */
    maxPartTokens: entry.max_part_tokens,
    /** A missing value is bounded by the maximum for its kind of part. The text of a page counts in addition. */
    mediaTokens: {
      imagePatch: media_tokens.image_patch,
      page: media_tokens.page,
      audioSecond: media_tokens.audio_second,
    },
    automaticCacheWrites: entry.automatic_cache_writes ?? false,
    minCachedTokens: entry.min_cached_tokens ?? 1_024,
    /** One read of a cached prefix saves more than writing it costs, at every length of a prompt. */
    cacheWritePaysOff: prices.standard.every(({ prices: each }) => onceReadSaves(each)),
    /** The provider's own names for the model, which callers of the native formats use. */
    aliases: entry.aliases,
    /** Unix seconds. */
    created: Date.parse(entry.released) / 1000,
    /** Unix seconds, possibly in the future. Deprecated models are still served. */
    deprecatedAt: entry.deprecated_at === undefined ? null : Date.parse(entry.deprecated_at) / 1000,
    /** Upstreams are tried in this order. */
    upstreams: entry.upstreams.map(({ cost, batch_discount_bps: batchDiscountBps, ...served }) => ({
      ...served,
      ...(batchDiscountBps !== undefined && { batchDiscountBps }),
      ...(cost && { cost: upstreamCostOf(cost) }),
    })),
    ...(task && { task }),
    defaultResponseFormat: entry.default_response_format ?? "url",
    defaultEditFormat: entry.default_edit_format ?? entry.default_response_format ?? "url",
    /** Private to this module, like the next field. */
    prices,
    ...(input_schema && {
      inputSchema: input_schema,
      media: { schema: input_schema, check: inputCheck(input_schema), units, variants },
    }),
    /** `x_pricing`, a line for each price key. Tiers and variants have their own: `input_above_200000`, `image_hd`. */
    pricing: pricingOf(
      [
        ["", entry.pricing],
        ...entry.tiers.map((tier) => [`_above_${tier.above_input_tokens}`, tier.pricing] as const),
        ...entry.variants.map((variant) => [`_${variant.name}`, variant.pricing] as const),
      ],
      eliteDiscountBps,
    ),
  };
}

export function upstreamOf(id: string, entry: UpstreamEntry) {
  return {
    id,
    provider: entry.provider,
    /** The address in the catalog; the variable `baseUrlEnv` overrides it. */
    baseUrl: entry.base_url,
    baseUrlEnv: entry.base_url_env,
    /** The variable that holds the upstream's key. Undefined if the upstream needs no key. */
    apiKeyEnv: entry.key_env,
    /** The variables with the parts of a cloud's address that are the operator's own. */
    addressEnv: entry.address_env,
    region: entry.region,
    /** A short name in lower case, such as `eu`. Undefined if the operator does not promise one. */
    dataResidency: entry.data_residency,
    /** The formats that it supports natively. Calls in other formats are converted to the first. */
    formats: entry.formats,
    storesAnswers: entry.stores_answers,
    quirks: entry.quirks ?? noQuirks,
    /** Maximum concurrent calls from one worker process. */
    concurrency: entry.concurrency,
    deadlines: {
      firstByteMs: entry.first_byte_timeout_ms,
      silenceMs: entry.silence_timeout_ms,
      totalMs: entry.total_timeout_ms,
    },
  };
}
