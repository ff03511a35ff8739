import type { Quirks } from "#catalog";
import type { ServiceError } from "#errors";
import { type UploadRef } from "#formats";
import { isSet, type JsonObject } from "#json";

/** Of a response that the account may refer to later. Its own `store` is false: the provider stores nothing. */
export interface StoreState {
  readonly store: boolean;
  readonly previousResponseId?: string;
}

/** Our fields of every response: the model by the name that the caller asked for, and defaults for what the provider leaves out. */
export interface ResponseIdentity {
  readonly model: string;
  /** Unix seconds. */
  readonly created: number;
  /** Unix seconds, at the time of asking. */
  readonly now?: () => number;
  /** Unique: made of the request id. */
  readonly id: string;
  /** Of the prompt, for formats that show its tokens before the provider has counted them. */
  readonly inputEstimate?: number;
  /** Of a response that is to be stored, or that continues a stored one. */
  readonly state?: StoreState;
}

/** The content of an upload: an address (which may be a data address), or base64. */
export interface ResolvedUpload {
  readonly mime: string;
  readonly address: string;
  readonly base64: string;
}

/** Writes one stream to the caller. */
export interface StreamWriter {
  /** The events for one item (a chat chunk, or a native event); "" if there are none. */
  write(item: JsonObject): string;
  /** Usage in chat shape, if the provider sent it. `soFar`: accept a count of the prompt alone. */
  usage(soFar?: boolean): unknown;
  /** UTF-8 bytes of output written so far: text, reasoning, tool names and arguments. */
  outputBytes(): number;
  /** The response that the last event will have, of a stream whose response is to be stored. */
  readonly response?: (estimate: TokenEstimate) => JsonObject | undefined;
  /** The last events of a completed stream; `estimate` replaces usage that the provider did not send. */
  end(estimate: TokenEstimate): string;
  /** The last events of a failed stream, for formats whose final event repeats the response so far. */
  readonly fail?: (error: ServiceError) => string;
}

export interface TokenEstimate {
  readonly input: number;
  readonly output: number;
  /** What the call is charged: a decimal string, for formats whose usage may have a field for it. */
  readonly costUsd?: string;
}

/** The longest lifetime of the cache breakpoints (`cache_control`) that an upstream gets. */
export type CacheLifetime = "none" | "5m" | "1h";

export interface UpstreamTarget {
  /** The upstream's own name for the model. */
  readonly model: string;
  /** Maximum output tokens of each choice. Undefined: none is sent, which only some OpenAI-compatible servers allow. */
  readonly cap: number | undefined;
  /** The field of chat upstreams for the cap. */
  readonly capField: "max_tokens" | "max_completion_tokens";
  /** Of an upstream that speaks chat. */
  readonly quirks?: Quirks;
  /** The model reasons out of sight, so that its reasoning is lost unless the provider returns its state. */
  readonly hiddenReasoning?: boolean;
  /** By default none. */
  readonly cacheLifetime?: CacheLifetime;
}

/** A request in another format, with the names of its ignored parameters. */
export interface ConvertedRequest {
  readonly request: JsonObject;
  readonly ignored: readonly string[];
}

/** Converts one format to chat-completions and back, and passes native requests and answers through. */
export interface FormatConverter {
  /** The request with each upload's id replaced by its content. Runs before any conversion. */
  resolveUploads(request: JsonObject, resolve: (ref: UploadRef) => ResolvedUpload): JsonObject;
  /** Throws `invalidValue` naming the caller's field for what changes the meaning and cannot be converted. */
  requestToChat(request: JsonObject): ConvertedRequest;
  /** By top-level chat field, the caller's field that errors name in its place. */
  readonly callerFields: Readonly<Record<string, string>>;
  /** The caller's JSON body from a completed chat answer (`completeChat`). `request`: the caller's own, which some fields echo. */
  responseFromChat(answer: JsonObject, identity: ResponseIdentity, request: JsonObject): JsonObject;
  /** Writes chat chunks, also incomplete ones; usage may come alone or with the last choice. */
  streamFromChat(identity: ResponseIdentity, request: JsonObject): StreamWriter;

  /** From a chat request with its model and output cap set. Throws `invalidValue` naming the chat field for what cannot be converted. */
  requestFromChat(request: JsonObject, target?: Pick<UpstreamTarget, "quirks" | "hiddenReasoning">): ConvertedRequest;
  /** The provider's whole answer as a chat.completion object. */
  responseToChat(answer: JsonObject): JsonObject;
  /** The provider's stream events (parsed JSON) as chat.completion.chunk objects. */
  streamToChat(): { write(event: JsonObject): readonly JsonObject[]; usage(soFar?: boolean): unknown };

  /** For providers that speak the caller's format: nothing changes but the model id, the output cap, and what is ignored. */
  readonly native: {
    prepare(request: JsonObject, target: UpstreamTarget, ignored?: IgnoredParams): JsonObject;
    /** Part of `prepare`: without the reasoning state of models of other formats, which the provider refuses. */
    withoutForeignState?(request: JsonObject, model: string): JsonObject;
    /** The answer with the model of `identity`. */
    finish(answer: JsonObject, identity: ResponseIdentity, estimate: TokenEstimate): JsonObject;
    /** Usage of an answer in chat shape, for billing. */
    usage(answer: JsonObject): unknown;
    /** The provider's events, changed only in the model id. */
    stream(identity: ResponseIdentity): StreamWriter;
  };
}

const headerSafe = /^[\w.-]{1,64}$/;
const maxNames = 32;

/** Collects the ignored parameters of a request for the header `x-ignored-params`, which limits their names. */
export function ignoredParams() {
  const names = new Set<string>();
  return {
    add(name: string, value: unknown): void {
      if (isSet(value) && headerSafe.test(name) && names.size < maxNames) names.add(name);
    },
    names: (): readonly string[] => [...names],
  };
}

export type IgnoredParams = ReturnType<typeof ignoredParams>;
