import type { ServiceError } from "#errors";

export const formats = ["chat", "messages", "responses", "gemini"] as const;
export type Format = (typeof formats)[number];

/** What costs extra or not every model supports: the catalog entry of a model must list each that a call requests. */
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

/** The kind of a media part by its field, which is also the feature that the model needs. */
export type PartKind = "image" | "audio" | "file";
/** The kind of a file by its bytes. */
export type Content = "image" | "audio" | "video" | "pdf" | "text" | "other";

export interface Dimensions {
  readonly width: number;
  readonly height: number;
}

/** A media part of a request, for the bound of its cost. */
export interface MediaPart {
  readonly kind: PartKind;
  /** Undefined for a link, which only the provider fetches. */
  readonly content?: Content;
  readonly bytes?: number;
  /** Of an image, if its header has them. */
  readonly dimensions?: Dimensions;
  /** Upper bound for a recording, if its header gives one. */
  readonly seconds?: number;
  /** The upload with the content: `upl_...` */
  readonly upload?: string;
}

/** What the bound of a call's cost is computed from. */
export interface CallSize {
  /** UTF-8 bytes of the body without its media parts' own bytes (data addresses, base64). */
  readonly inputBytes: number;
  /** Messages, inputs of an embeddings call, documents of a rerank call: each adds an allowance to the bound. */
  readonly messages: number;
  /** Of a rerank call: the most searches that it can be billed as. */
  readonly searches?: number;
  readonly parts: readonly MediaPart[];
  /** Set if the request writes to the prompt cache: the longest lifetime that it names. */
  readonly cacheWrites?: "short" | "long";
  /** Number of requested answers. */
  readonly choices: number;
  /** The caller's own cap on output tokens, for each choice. */
  readonly outputCap?: number;
}

/** An upload that a request names, and the field that names it. */
export interface UploadRef {
  /** `upl_...` */
  readonly id: string;
  readonly param: string;
  /** The kind that the field requires; undefined if only the provider checks it. */
  readonly kind?: "image" | "audio" | undefined;
}

/** The model's own parameters, checked against its input schema. */
export interface ModelInput {
  readonly value: Readonly<Record<string, unknown>>;
  /** Their path in the body: "" (top level) or "input". */
  readonly at: "" | "input";
}

/** Which upstreams the caller prefers, by their ids. */
export interface ProviderPreferences {
  readonly order?: readonly string[] | null | undefined;
  readonly only?: readonly string[] | null | undefined;
  readonly ignore?: readonly string[] | null | undefined;
  readonly sort?: "price" | "latency" | "throughput" | null | undefined;
  readonly allow_fallbacks?: boolean | null | undefined;
}

/** A model as a request names it, and the field that does. */
export interface NamedModel {
  readonly name: string;
  readonly param: string;
}

/** What admission needs to know of a call of any format. */
export interface ParsedCall {
  /** Empty if the caller named none: the first one of the endpoint. */
  readonly model: string;
  /** Of a request with a list of models: all of them in order, `model` first. */
  readonly models?: readonly NamedModel[];
  readonly preferences?: ProviderPreferences;
  readonly stream: boolean;
  readonly size: CallSize;
  /** UTF-8 bytes of the text without its JSON framing, for estimating tokens. */
  readonly textBytes: number;
  /** Each requested feature with the field that requests it. */
  readonly features: ReadonlyMap<Feature, string>;
  readonly uploads: readonly UploadRef[];
  /** Only of calls for images or media. */
  readonly input?: ModelInput;
  /** Of an audio call: the format in which the caller wants the answer. */
  readonly answerFormat?: string;
  /** The stream is of bytes, not of events: workers write them in base64. */
  readonly isBinary?: true;
  /** The token mint that the caller chose, unchecked. */
  readonly buybackToken?: string;
}

/** The API's side of a format. */
export interface Codec {
  /** Throws `invalidValue` naming the first field at fault. `bodyBytes`: length of the body as received. */
  parse(body: unknown, bodyBytes: number): ParsedCall;
  /** The JSON body of an error. */
  error(error: ServiceError, requestId: string): string;
  /** The events that end a stream with an error. `begun`: something other than pings was written before. */
  streamError(error: ServiceError, requestId: string, begun: boolean): string;
  /** Content type of a stream, if it is not `text/event-stream`. */
  readonly streamType?: string;
  /** Written into a silent stream to keep it open. */
  readonly ping: string;
}
