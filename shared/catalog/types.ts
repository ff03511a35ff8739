import type { z } from "zod";
import type { Feature, Format } from "#formats";

/** Whose prices: `list_usd` or `elite_usd`. */
export type Tier = "standard" | "elite";

/** What usage is counted in. Tokens are priced by the million, the others by the piece. */
export type PriceKey =
  | "input"
  | "cached_input"
  | "cache_write"
  | "cache_write_1h"
  | "audio_input"
  | "output"
  | "audio_output"
  | "image"
  | "input_image"
  | "second"
  | "character"
  | "minute"
  | "request";

/** Counts by price key. `input` is uncached input; all counts are whole but for seconds and minutes (6 decimals). */
export type Usage = Readonly<Partial<Record<PriceKey, number>>>;

export type ModelType = "text" | "image" | "video" | "audio" | "embeddings" | "other";

/** What kind of call a media model takes: which of a provider's routes it goes to. */
export type Task = "images" | "speech" | "transcription" | "video" | "music";

/** Prices for prompts of more than `aboveInputTokens`, read from their strings once, at load. */
export interface Band {
  readonly aboveInputTokens: number;
  /** In 10^-10 nano-USD, of one token, image, second..., with the stand-ins filled in. */
  readonly prices: Readonly<Partial<Record<PriceKey, bigint>>>;
  /** The most that one can cost in this band or in one below it. */
  readonly dearest: {
    /** Of plain input, and of what a cache served. */
    readonly input: bigint;
    readonly cacheWrite: bigint;
    readonly cacheWriteLong: bigint;
    readonly audioInput: bigint;
    readonly output: bigint;
    readonly request: bigint;
  };
}

/** How many units of a price key an input makes, or can make at most. Fields are those of the input itself. */
export type UnitRule =
  /** The field's number, or string of digits. */
  | { readonly field: string }
  /** Of one call, whatever is in it. */
  | { readonly count: number }
  /** Unicode code points of a text; with `per`, again for each unit of that key (providers that bill every image's prompt). */
  | { readonly characters_of: string; readonly per?: "image" | undefined }
  /** What the fields name together: a list has its items, a lone value is one. */
  | { readonly items_of: readonly string[]; readonly per?: "image" | undefined }
  /** A recording's length: `bytes_per_second` is what the most compressed one has. Billed as `min` at least. */
  | {
      readonly minutes_of: string;
      readonly bytes_per_second: number;
      readonly max: number;
      readonly min?: number | undefined;
    };

/** One of these values, or being there at all. */
export type Condition = readonly (string | number | boolean)[] | { readonly present: boolean };

/** Prices of inputs that meet every condition. */
export interface Variant {
  readonly when: Readonly<Record<string, Condition>>;
  readonly prices: Readonly<Record<Tier, Readonly<Partial<Record<PriceKey, bigint>>>>>;
}

/** What a model needs whose cost goes by its input. */
export interface Media {
  readonly schema: Readonly<Record<string, unknown>>;
  readonly check: z.ZodType;
  readonly units: Readonly<Partial<Record<PriceKey, UnitRule | undefined>>>;
  /** In order: a price key costs what the first says that fits and names it. */
  readonly variants: readonly Variant[];
}

/** Ascending; the first holds for every prompt. */
export type Bands = readonly [Band, ...Band[]];
export type PriceBook = Readonly<Record<Tier, Bands>>;

export interface Model {
  /** `provider/model`: the slash is part of it. */
  readonly id: string;
  readonly name: string;
  readonly ownedBy: string;
  readonly type: ModelType;
  /** The one path of the main interface that serves it. */
  readonly endpoint: string;
  /** Most tokens of prompt and answer together; of one input for embeddings; 0 where it has no meaning. */
  readonly contextLength: number;
  /** 0 for models that write no text. */
  readonly maxOutputTokens: number;
  /** The field in which its upstreams take the output cap. */
  readonly outputCapField: "max_tokens" | "max_completion_tokens";
  /** It bills reasoning that does not, or not fully, appear in its stream: output that was read does not tell what it costs. */
  readonly hiddenReasoning: boolean;
  readonly eliteDiscountBps: number;
  readonly features: ReadonlySet<Feature>;
  /** Most tokens that one part can count as. A kind that is not here is refused. */
  readonly maxPartTokens: Readonly<Partial<Record<"image" | "audio" | "file", number | undefined>>>;
  /** Most tokens of each; what is not here has the maximum of its part's kind. */
  readonly mediaTokens: {
    /** Of 28 by 28 pixels. */
    readonly imagePatch?: number;
    /** Of the picture of a PDF's page; its text is counted besides. */
    readonly page?: number;
    readonly audioSecond?: number;
  };
  /** Its provider writes prompts to a cache unasked, and bills it. */
  readonly automaticCacheWrites: boolean;
  /** The provider's own names for it, without a provider: what the native formats are called with. */
  readonly aliases: readonly string[];
  /** Unix seconds. */
  readonly created: number;
  /** Of types image, video, audio and other. */
  readonly task?: Task;
  /** JSON Schema (draft 2020-12 subset) of the model's own parameters: `x_input_schema` in `GET /v1/models`. */
  readonly inputSchema?: Readonly<Record<string, unknown>>;
  /** In the order in which they are tried. */
  readonly upstreams: readonly {
    readonly upstream: string;
    /** Its own name for the model. */
    readonly model: string;
    /** Where that is less than what it speaks. */
    readonly formats?: readonly Format[] | undefined;
  }[];
  /** For this module alone, as is `media`: `bound`, `cost` and `pricing` read it. */
  readonly prices: PriceBook;
  readonly media?: Media;
}

export interface Upstream {
  readonly id: string;
  readonly provider: "openai" | "anthropic" | "gemini" | "replicate" | "fal" | "local";
  /** What a server of OpenAI's interface speaks; the first is what other formats are translated into. */
  readonly formats: readonly Format[];
  /** What the catalog says; a value of the variable `baseUrlEnv` goes before it. */
  readonly baseUrl?: string;
  readonly baseUrlEnv?: string;
  /** The variable that holds its key. Absent: it needs none. */
  readonly apiKeyEnv?: string;
  /** It keeps chat answers unless it is told not to. */
  readonly storesAnswers: boolean;
  /** What becomes of fields of a chat request that OpenAI does not document. */
  readonly unknownFields: "pass" | "drop";
  /** Calls in flight from one worker process. */
  readonly concurrency: number;
  readonly deadlines: { readonly firstByteMs: number; readonly silenceMs: number; readonly totalMs: number };
}

/** One line of `x_pricing`: exact decimal strings, USD per unit. */
export interface PriceLine {
  readonly unit: string;
  readonly list_usd: string;
  readonly elite_usd: string;
}

/** The most that a call can cost, worked out before it runs. */
export interface Bound {
  /** Covers the worst case of `inputTokens` and of `outputCap` tokens for each choice. */
  readonly mostNanoUsd: bigint;
  /** The least hold that is of use: all of it if the caller named a cap, else one output token for each choice. */
  readonly leastNanoUsd: bigint;
  /** Of `mostNanoUsd` what the input alone can cost. */
  readonly inputNanoUsd: bigint;
  readonly inputTokens: number;
  /** For each choice: the least of the caller's, the model's and the context length. */
  readonly outputCap: number;
  readonly isCapNamed: boolean;
  /** The output tokens for each choice that a hold of so much pays for: 0 to `outputCap`. */
  capFor(grantedNanoUsd: bigint): number;
}

export class CatalogError extends Error {
  override readonly name = "CatalogError";
}
