import type { ServiceError } from "#errors";
import type { JsonObject } from "#json";
import type { ProviderPreferences } from "./routing-fields.ts";

export const formats = ["chat", "messages", "responses", "gemini"] as const;
export type Format = (typeof formats)[number];

/** Capabilities that cost extra or that some models lack. A model's catalog entry must list those a call requests. */
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

/** The kind of a media part according to its field. It is also the feature that the model needs. */
export type PartKind = "image" | "audio" | "file";
/** The kind of a file according to its bytes. */
export type Content = "image" | "audio" | "video" | "pdf" | "text" | "other";

export interface Dimensions {
  readonly width: number;
  readonly height: number;
}

/** A media part of a request, for the bound of its cost. */
export interface MediaPart {
  readonly kind: PartKind;
  /** Unknown for a link, which only the provider fetches. */
  readonly content?: Content;
  readonly bytes?: number;
  /** The dimensions of an image, if its header contains them. */
  readonly dimensions?: Dimensions;
  /** Upper bound of a recording's duration, if its header contains one. */
  readonly seconds?: number;
  /** The upload with the content: `upl_...` */
  readonly upload?: string;
}

/** The inputs to the bound of a call's cost. */
export interface CallSize {
  /** UTF-8 bytes of the body, excluding the bytes of its media parts (data addresses, base64). */
  readonly inputBytes: number;
  /** Messages, inputs of an embeddings call, or documents of a rerank call. Each adds an allowance to the bound. */
  readonly messages: number;
  /** The most searches that a rerank call can be billed as. */
  readonly searches?: number;
  readonly parts: readonly MediaPart[];
  /** Set if the request writes to the prompt cache: the longest lifetime that it requests. */
  readonly cacheWrites?: "short" | "long";
  /** Number of requested answers. */
  readonly choices: number;
  /** The caller's own cap on output tokens, per choice. */
  readonly outputCap?: number;
}

/** An upload that a request refers to, and the field that does. */
export interface UploadRef {
  readonly id: string;
  readonly param: string;
  /** The kind that the field requires. Undefined if only the provider checks it. */
  readonly kind?: "image" | "audio" | undefined;
}

/** The model's own parameters, checked against its input schema. */
export interface ModelInput {
  readonly value: Readonly<Record<string, unknown>>;
  /** Their path in the body: "" (top level) or "input". */
  readonly at: "" | "input";
}

/** A model that a request refers to, and the field that does. */
export interface NamedModel {
  readonly name: string;
  readonly param: string;
}

/** The parsed form of a call in any format, as admission needs it. */
export interface ParsedCall {
  /** Empty if the caller named none, which selects the endpoint's first model. */
  readonly model: string;
  /** The models of a request with a list, in order, with `model` first. */
  readonly models?: readonly NamedModel[];
  readonly preferences?: ProviderPreferences;
  /** The caller's id of the conversation (`session_id`, `x-session-id`), at most 256 characters. */
  readonly sessionId?: string;
  /** Identifies the conversation without a `sessionId`, in up to 49,152 characters. Only text formats have it. */
  readonly conversation?: () => string;
  /** Workers add cache marks, where they pay off. `size` covers what they write. */
  readonly cacheMarks?: "auto";
  /** The caller's id of its user, at most 256 characters. */
  readonly user?: string;
  /** The caller's tags (`x-xm-tags`), by which usage can be summed. */
  readonly tags?: readonly string[];
  readonly stream: boolean;
  /** The caller does not wait for the response (docs/api/background.md). */
  readonly background?: true;
  readonly size: CallSize;
  /** UTF-8 bytes of the text without its JSON framing, for estimating tokens. */
  readonly textBytes: number;
  /** Each requested feature with the field that requests it. */
  readonly features: ReadonlyMap<Feature, string>;
  readonly uploads: readonly UploadRef[];
  /** Set only for image and media calls. */
  readonly input?: ModelInput;
  /** The response format that the caller of an audio route requests. */
  readonly answerFormat?: string;
  /** Set for a stream of bytes rather than events. Workers write it in base64. */
  readonly isBinary?: true;
  /** The token mint that the caller chose, unchecked. */
  readonly buybackToken?: string;
}

/** The API's side of a format. */
export interface Codec {
  /** Throws `invalidValue` naming the first field at fault. `bodyBytes` is the length of the body as received. */
  parse(body: unknown, bodyBytes: number): ParsedCall;
  /** The caller's id of its user, unchecked. Defaults to the field `user`. */
  readonly userOf?: (body: JsonObject) => unknown;
  error(error: ServiceError, requestId: string): string;
  /** The events that end a stream with an error. `begun` is true if something other than pings was written before. */
  streamError(error: ServiceError, requestId: string, begun: boolean): string;
  /** Content type of a stream, if it is not `text/event-stream`. */
  readonly streamType?: string;
  /** Written into a silent stream to keep it open. */
  readonly ping: string;
}
