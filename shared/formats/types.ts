import type { ServiceError } from "#errors";
import type { Dimensions } from "./dimensions.ts";

/** The formats that are spoken: by callers, and by upstreams. */
export const formats = ["chat", "messages", "responses", "gemini"] as const;
export type Format = (typeof formats)[number];

/** What costs extra or is not everywhere: a model serves a call only if its catalog entry has each that is asked for. */
export type Feature =
  | "tools"
  | "json"
  | "image"
  | "audio"
  | "file"
  | "logprobs"
  | "audio_output"
  | "web_search"
  | "service_tier"
  | "cache_retention";

/** What a media part is, as its field has it: the feature that the model needs for it. */
export type PartKind = "image" | "audio" | "file";
/** What a file is by its bytes. */
export type Content = "image" | "audio" | "video" | "pdf" | "text" | "other";

/** A media part of a request, as the bound of its cost sees it. */
export interface MediaPart {
  readonly kind: PartKind;
  /** Undefined where only the provider will see its bytes, which it fetches from an address. */
  readonly content?: Content;
  readonly bytes?: number;
  /** Of an image, where its first bytes say it. */
  readonly dimensions?: Dimensions;
  /** The most that a recording lasts, where its first bytes say it. */
  readonly seconds?: number;
  /** The upload that has its bytes: `upl_...` */
  readonly upload?: string;
}

/** What the bound of a call's cost is worked out from. */
export interface CallSize {
  /** UTF-8 bytes of the body without its media parts' own bytes (data addresses, base64). */
  readonly inputBytes: number;
  /** Messages, or inputs of an embeddings call: each has an allowance of its own. */
  readonly messages: number;
  readonly parts: readonly MediaPart[];
  /** Writes to the prompt cache that the request asks for, by the longest lifetime that it names. */
  readonly cacheWrites?: "short" | "long";
  /** `n`: how many answers are asked for. */
  readonly choices: number;
  /** The caller's own cap on output tokens, for each choice. */
  readonly outputCap?: number;
}

/** An upload that a request names, and the field that names it. */
export interface UploadRef {
  /** `upl_...` */
  readonly id: string;
  readonly param: string;
  /** What the field takes; undefined where it is the provider's affair. */
  readonly kind?: "image" | "audio" | undefined;
}

/** The model's own parameters, checked against its input schema. */
export interface ModelInput {
  readonly value: Readonly<Record<string, unknown>>;
  /** Where they stand in the body: "" (in the body itself) or "input". */
  readonly at: "" | "input";
}

/** What admission needs to know of a call, whatever its format. */
export interface ParsedCall {
  readonly model: string;
  readonly stream: boolean;
  readonly size: CallSize;
  /** UTF-8 bytes of what is said, without the framing: what an estimate of its tokens goes by. */
  readonly textBytes: number;
  /** Each feature with the field that asked for it. */
  readonly features: ReadonlyMap<Feature, string>;
  readonly uploads: readonly UploadRef[];
  /** Of a call for images or media. */
  readonly input?: ModelInput;
  /** The mint that the caller chose, as it was sent. */
  readonly buybackToken?: string;
}

/** The API's face of a format. */
export interface Codec {
  /** Throws `invalidValue` naming the first field at fault. `bodyBytes` is the body's length as it came. */
  parse(body: unknown, bodyBytes: number): ParsedCall;
  /** The JSON body of an error. */
  error(error: ServiceError, requestId: string): string;
  /**
   * The same inside a stream that has begun: whole events, after which the stream is closed. `begun`: something but pings
   * was written.
   */
  streamError(error: ServiceError, requestId: string, begun: boolean): string;
  /** Of a stream, where it is not that of server-sent events. */
  readonly streamType?: string;
  /** Written into a stream that has been silent for long. */
  readonly ping: string;
}
