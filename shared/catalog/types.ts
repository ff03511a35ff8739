import { z } from "zod";

/** Selects `list_usd` or `elite_usd`. */
export type Tier = "standard" | "elite";

/** Price keys that count input tokens and output tokens, in the unit `1M_tokens`. */
export const inputKeys = ["input", "cached_input", "cache_write", "cache_write_1h", "audio_input"] as const;
export const outputKeys = ["output", "audio_output"] as const;
export const tokenKeys = [...inputKeys, ...outputKeys] as const;
/** Price keys that count pieces. Their units have the same names, except that the unit of `input_image` is `image`. */
export const pieceKeys = ["image", "input_image", "second", "character", "minute", "request", "search"] as const;
export const priceKeys = [...inputKeys, ...outputKeys, ...pieceKeys] as const;
export type PriceKey = (typeof priceKeys)[number];

/**
 * Counts by price key. `input` is uncached input. Counts are whole numbers except seconds and minutes (6 decimals).
 * `reasoning` has no price of its own: it is the part of `output` that the provider reports as reasoning, if any.
 */
export type Usage = Readonly<Partial<Record<PriceKey | "reasoning", number>>>;

const sumOf = (usage: Usage, keys: readonly PriceKey[]) => keys.reduce((sum, key) => sum + (usage[key] ?? 0), 0);

/** The tokens of a usage as they are shown: cached ones are a part of the input. */
export const tokensOf = (usage: Usage) => ({
  inputTokens: sumOf(usage, inputKeys),
  outputTokens: sumOf(usage, outputKeys),
  cachedTokens: usage.cached_input ?? 0,
  reasoningTokens: usage.reasoning ?? 0,
});

export const modelTypes = ["text", "image", "video", "audio", "embeddings", "other"] as const;
export type ModelType = (typeof modelTypes)[number];

/** Tasks of models of type `other` that have their own endpoint, with JSON in and out. */
const jsonTasks = ["moderation", "rerank"] as const;
export type JsonTask = (typeof jsonTasks)[number];
/** The kind of call that a model serves, if it is not text or embeddings. It selects the provider's route. */
export const tasks = ["images", "speech", "transcription", "video", "music", ...jsonTasks] as const;
export type Task = (typeof tasks)[number];
export const isJsonTask = (task: Task | undefined): task is JsonTask => jsonTasks.some((each) => each === task);

/** The names and order are those of OpenRouter's `input_modalities` and `output_modalities`. */
export const modalities = ["text", "image", "file", "audio", "video", "embeddings", "moderation", "rerank"] as const;
export type Modality = (typeof modalities)[number];

/** Parameters of a chat request that a model may support, as in OpenRouter's `supported_parameters`. */
export const parameters = [
  "max_tokens",
  "max_completion_tokens",
  "temperature",
  "top_p",
  "stop",
  "seed",
  "frequency_penalty",
  "presence_penalty",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "response_format",
  "structured_outputs",
  "logprobs",
  "top_logprobs",
  "reasoning_effort",
  "web_search_options",
] as const;
export type Parameter = (typeof parameters)[number];

export const efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;
export type Effort = (typeof efforts)[number];

export const providers = [
  "openai",
  "anthropic",
  "gemini",
  "azure",
  "bedrock",
  "vertex",
  "replicate",
  "fal",
  "local",
] as const;
export type ProviderName = (typeof providers)[number];

/** A part of a cloud's address: the resource of an Azure account, a region, the project of a Google account. */
export type AddressPart = "resource" | "region" | "project";
export type AddressParts = Readonly<Partial<Record<AddressPart, string | undefined>>>;

/** Units of 10^-10 nano-USD per token, image and so on. Keys without their own price have that of their fallback. */
export type Prices = Readonly<Partial<Record<PriceKey, bigint>>>;

/** Prices for prompts of more than `aboveInputTokens`, parsed once at load. */
export interface Band {
  readonly aboveInputTokens: number;
  readonly prices: Prices;
  /** The highest price of one token in this band or a lower one. `input` covers uncached and cached input. */
  readonly dearest: Readonly<
    Record<"input" | "cacheWrite" | "cacheWriteLong" | "audioInput" | "output" | "request" | "search", bigint>
  >;
}

const field = z.string().min(1);

/** Rules for the number of units of a price key that an input makes, or can make at most. */
export const unitRules = {
  /** The value of the field, a number or a string of digits. */
  field: z.strictObject({ field }),
  /** A fixed number for each call. */
  count: z.strictObject({ count: z.int().positive().max(1_000) }),
  /** Unicode code points of a text. */
  characters: z.strictObject({ characters_of: field }),
  /**
   * The number of values in the fields: a list counts its items, a single value counts as one. With `per`, the number
   * is multiplied by the units of that key (for providers that bill the input of every image).
   */
  items: z.strictObject({ items_of: z.array(field).min(1), per: z.literal("image").optional() }),
  /** A length in milliseconds; each started minute counts as one. */
  startedMinutes: z.strictObject({ started_minutes_of: field }),
  /** The length of a recording. `bytes_per_second` is that of the strongest compression. At least `min` is billed. */
  minutes: z.strictObject({
    minutes_of: field,
    bytes_per_second: z.int().positive(),
    max: z.number().positive().max(10_000),
    min: z.number().positive().max(10).optional(),
  }),
} as const;
export type UnitRule = { [Name in keyof typeof unitRules]: z.infer<(typeof unitRules)[Name]> }[keyof typeof unitRules];

/** A list of values, or a condition on the presence of the field. */
export const condition = z.union([
  z.array(z.union([z.string(), z.number(), z.boolean()])).min(1),
  z.strictObject({ present: z.boolean() }),
]);
export type Condition = z.infer<typeof condition>;

/** Bands in ascending order. The first band applies to every prompt. */
export type Bands = readonly [Band, ...Band[]];
export type PriceBook = Readonly<Record<Tier, Bands>>;

/** One line of `x_pricing`: exact decimal strings in USD per unit. */
export interface PriceLine {
  readonly unit: string;
  readonly list_usd: string;
  readonly elite_usd: string;
}

/** The maximum cost of a call, computed before it runs. */
export interface Bound {
  /** Covers the worst case of `inputTokens` and of `outputCap` tokens for each choice. */
  readonly maxNanoUsd: bigint;
  /** The smallest useful hold: the maximum if the caller set a cap, otherwise one output token for each choice. */
  readonly minNanoUsd: bigint;
  /** The part of `maxNanoUsd` that covers the input. */
  readonly inputNanoUsd: bigint;
  readonly inputTokens: number;
  /** The cap per choice: the smallest of the caller's cap, the model's cap and the context length. */
  readonly outputCap: number;
  readonly isCapNamed: boolean;
  /** Returns the output tokens per choice that a smaller hold pays for, from 0 to `outputCap`. */
  capFor(grantedNanoUsd: bigint): number;
}

export class CatalogError extends Error {
  override readonly name = "CatalogError";
}

/** Reports a fault of the catalog at a path below the entry that is being checked. */
export type Complain = (path: readonly (string | number)[], message: string) => void;
