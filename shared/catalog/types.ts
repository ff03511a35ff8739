import { z } from "zod";
import type { Feature, Format } from "#formats";

/** Whose prices: `list_usd` or `elite_usd`. */
export type Tier = "standard" | "elite";

/** Price keys that count input tokens, and those that count output tokens: unit `1M_tokens`. */
export const inputKeys = ["input", "cached_input", "cache_write", "cache_write_1h", "audio_input"] as const;
export const outputKeys = ["output", "audio_output"] as const;
/** Price keys that count pieces: units of the same names, except that the unit of `input_image` is `image`. */
const pieceKeys = ["image", "input_image", "second", "character", "minute", "request"] as const;
export const priceKeys = [...inputKeys, ...outputKeys, ...pieceKeys] as const;
export type PriceKey = (typeof priceKeys)[number];

/** Counts by price key. `input` is uncached input. Counts are whole numbers except seconds and minutes (6 decimals). */
export type Usage = Readonly<Partial<Record<PriceKey, number>>>;

export const modelTypes = ["text", "image", "video", "audio", "embeddings", "other"] as const;
export type ModelType = (typeof modelTypes)[number];

/** The kind of call that a media model serves; selects the provider's route. */
export const tasks = ["images", "speech", "transcription", "video", "music"] as const;
export type Task = (typeof tasks)[number];

export const providers = ["openai", "anthropic", "gemini", "replicate", "fal", "local"] as const;

/** In 10^-10 nano-USD per token, image, second and so on; keys without a price of their own have that of their fallback. */
export type Prices = Readonly<Partial<Record<PriceKey, bigint>>>;

/** Prices for prompts of more than `aboveInputTokens`, parsed once, at load. */
export interface Band {
  readonly aboveInputTokens: number;
  readonly prices: Prices;
  /** The highest price of one token in this band or in a lower one. */
  readonly dearest: {
    /** Of uncached and cached input. */
    readonly input: bigint;
    readonly cacheWrite: bigint;
    readonly cacheWriteLong: bigint;
    readonly audioInput: bigint;
    readonly output: bigint;
    readonly request: bigint;
  };
}

const field = z.string().min(1);
const per = z.literal("image").optional();

/** Rules for the number of units of a price key that an input makes, or can make at most. Fields are those of the input. */
export const unitRules = {
  /** The field's number, or string of digits. */
  field: z.strictObject({ field }),
  /** A fixed number for each call. */
  count: z.strictObject({ count: z.int().positive().max(1_000) }),
  /** Unicode code points of a text; with `per`, for each unit of that key (providers that bill the prompt of every image). */
  characters: z.strictObject({ characters_of: field, per }),
  /** The number of values in the fields: a list counts its items, a single value is one. */
  items: z.strictObject({ items_of: z.array(field).min(1), per }),
  /** The length of a recording; `bytes_per_second` is that of the strongest compression. Billed as at least `min`. */
  minutes: z.strictObject({
    minutes_of: field,
    bytes_per_second: z.int().positive(),
    max: z.number().positive().max(10_000),
    min: z.number().positive().max(10).optional(),
  }),
} as const;
export type UnitRule = { [Name in keyof typeof unitRules]: z.infer<(typeof unitRules)[Name]> }[keyof typeof unitRules];

/** One of these values, or whether the field is present. */
export const condition = z.union([
  z.array(z.union([z.string(), z.number(), z.boolean()])).min(1),
  z.strictObject({ present: z.boolean() }),
]);
export type Condition = z.infer<typeof condition>;

/** Prices of inputs that meet every condition. */
export interface Variant {
  readonly when: Readonly<Record<string, Condition>>;
  readonly prices: Readonly<Record<Tier, Prices>>;
}

/** For models whose cost depends on their input. */
export interface Media {
  readonly schema: Readonly<Record<string, unknown>>;
  readonly check: z.ZodType;
  readonly units: Readonly<Partial<Record<PriceKey, UnitRule | undefined>>>;
  /** The price of a key is that of the first variant that matches and has the key. */
  readonly variants: readonly Variant[];
}

/** In ascending order; the first applies to every prompt. */
export type Bands = readonly [Band, ...Band[]];
export type PriceBook = Readonly<Record<Tier, Bands>>;

export interface Model {
  /** `provider/model`: the slash is part of it. */
  readonly id: string;
  readonly name: string;
  readonly ownedBy: string;
  readonly type: ModelType;
  /** The path of the main interface that serves it. */
  readonly endpoint: string;
  /** Maximum tokens of prompt and answer together; of one input for embeddings; 0 for media. */
  readonly contextLength: number;
  /** 0 for models that produce no text. */
  readonly maxOutputTokens: number;
  /** The field in which its upstreams expect the output cap. */
  readonly outputCapField: "max_tokens" | "max_completion_tokens";
  /** It bills reasoning that its stream does not fully contain, so the streamed output does not determine the cost. */
  readonly hiddenReasoning: boolean;
  readonly eliteDiscountBps: number;
  readonly features: ReadonlySet<Feature>;
  /** Maximum tokens of one part. A kind that is missing here is refused. */
  readonly maxPartTokens: Readonly<Partial<Record<"image" | "audio" | "file", number | undefined>>>;
  /** Maximum tokens of each; a missing one is bounded by the maximum of its part's kind. */
  readonly mediaTokens: {
    /** Of 28 by 28 pixels. */
    readonly imagePatch?: number;
    /** Of the rendered image of a PDF page; its text counts in addition. */
    readonly page?: number;
    readonly audioSecond?: number;
  };
  /** Its provider writes prompts to a cache without being asked, and bills it. */
  readonly automaticCacheWrites: boolean;
  /** The provider's own names for it, which callers of the native formats use. */
  readonly aliases: readonly string[];
  /** Unix seconds. */
  readonly created: number;
  /** For types image, video, audio and other. */
  readonly task?: Task;
  /** JSON Schema (draft 2020-12 subset) of the model's own parameters: `x_input_schema` in `GET /v1/models`. */
  readonly inputSchema?: Readonly<Record<string, unknown>>;
  /** In the order in which they are tried. */
  readonly upstreams: readonly {
    readonly upstream: string;
    /** The upstream's name for the model. */
    readonly model: string;
    /** Set if the upstream serves this model in fewer formats than it supports. */
    readonly formats?: readonly Format[] | undefined;
  }[];
  /** Private to this module, as is `media`. */
  readonly prices: PriceBook;
  readonly media?: Media;
}

export interface Upstream {
  readonly id: string;
  readonly provider: (typeof providers)[number];
  /** The formats that it supports natively. Calls in other formats are converted to the first. */
  readonly formats: readonly Format[];
  /** The address in the catalog; the variable `baseUrlEnv` overrides it. */
  readonly baseUrl?: string;
  readonly baseUrlEnv?: string;
  /** The variable that holds its key. Absent: it needs no key. */
  readonly apiKeyEnv?: string;
  /** It stores chat answers unless the request has `store: false`. */
  readonly storesAnswers: boolean;
  /** Whether fields of a chat request that OpenAI does not document are sent. */
  readonly unknownFields: "pass" | "drop";
  /** Maximum concurrent calls from one worker process. */
  readonly concurrency: number;
  readonly deadlines: { readonly firstByteMs: number; readonly silenceMs: number; readonly totalMs: number };
}

/** One line of `x_pricing`: exact decimal strings in USD per unit. */
export interface PriceLine {
  readonly unit: string;
  readonly list_usd: string;
  readonly elite_usd: string;
}

/** The most that a call can cost, computed before it runs. */
export interface Bound {
  /** Covers the worst case of `inputTokens` and of `outputCap` tokens for each choice. */
  readonly mostNanoUsd: bigint;
  /** The smallest useful hold: all of it if the caller set a cap, else one output token for each choice. */
  readonly leastNanoUsd: bigint;
  /** The part of `mostNanoUsd` that is for the input. */
  readonly inputNanoUsd: bigint;
  readonly inputTokens: number;
  /** For each choice: the smallest of the caller's cap, the model's cap and the context length. */
  readonly outputCap: number;
  readonly isCapNamed: boolean;
  /** The output tokens for each choice that a smaller hold pays for: 0 to `outputCap`. */
  capFor(grantedNanoUsd: bigint): number;
}

export class CatalogError extends Error {
  override readonly name = "CatalogError";
}

/** Reports a fault of the catalog at a path below the entry that is being checked. */
export type Complain = (path: readonly (string | number)[], message: string) => void;
