import type { Quirks } from "#catalog";
import type { ServiceError } from "#errors";
import type { UploadRef } from "#formats";
import { isSet, type JsonObject } from "#json";

/**
 * State of a response that the account may refer to later. The response's own `store` field is false, because the provider
 * stores nothing.
 */
export interface StoreState {
  readonly store: boolean;
  readonly previousResponseId?: string;
}

/**
 * Fields that we set on every response: the model under the name that the caller requested, and defaults for what the
 * provider omits.
 */
export interface ResponseIdentity {
  readonly model: string;
  /** Unix seconds. */
  readonly created: number;
  /** The current time in Unix seconds. */
  readonly now?: () => number;
  /** A unique id, made from the request id. */
  readonly id: string;
  /** Estimated tokens of the prompt, for formats that report them before the provider has counted. */
  readonly inputEstimate?: number;
  /** Set if the response is to be stored or continues a stored one. */
  readonly state?: StoreState;
  /**
   * Set for a response in the background, which has our id. Its writer leaves out the first and the last event, and the
   * API writes them (shared/formats/responses/background.ts).
   */
  readonly background?: true;
}

/** The content of an upload: a URL (possibly a data URL), or base64. */
export interface ResolvedUpload {
  readonly mime: string;
  readonly address: string;
  readonly base64: string;
}

export interface StreamWriter {
  /** The events for one item (a chat chunk, or a native event); "" if there are none. */
  write(item: JsonObject): string;
  /** Usage in chat shape, if the provider sent it. `soFar` accepts a count of the prompt alone. */
  usage(soFar?: boolean): unknown;
  /** UTF-8 bytes of output written so far: text, reasoning, tool names and arguments. */
  outputBytes(): number;
  /** The response that the last event will carry, for a stream whose response is stored. */
  readonly response?: (estimate: TokenEstimate) => JsonObject | undefined;
  /** The output items that were written so far, for a response in the background. */
  readonly itemsSoFar?: () => readonly JsonObject[];
  /** The last events of a completed stream; `estimate` replaces usage that the provider did not send. */
  end(estimate: TokenEstimate): string;
  /** The last events of a failed stream, for formats whose final event repeats the response so far. */
  readonly fail?: (error: ServiceError) => string;
}

export interface TokenEstimate {
  readonly input: number;
  readonly output: number;
  /** The charge for the call as a decimal string, for formats whose usage may have a field for it. */
  readonly costUsd?: string;
  /** The call ran with a provider key of its account. */
  readonly isByok?: true;
}

/** The longest lifetime of cache breakpoints (`cache_control`) that is passed to an upstream. */
export type CacheLifetime = "none" | "5m" | "1h";

export interface UpstreamTarget {
  /** The upstream's own name for the model. */
  readonly model: string;
  /** Maximum output tokens of each choice. If undefined, none is sent, which only some OpenAI-compatible servers allow. */
  readonly cap: number | undefined;
  /** The field in which a chat upstream expects the cap. */
  readonly capField: "max_tokens" | "max_completion_tokens";
  /** Quirks of a chat upstream. */
  readonly quirks?: Quirks;
  /** The model does not reveal its reasoning, which is lost unless the provider returns its state. */
  readonly hiddenReasoning?: boolean;
  /** Defaults to `none`. */
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
  /** Maps a top-level chat field to the caller's field that errors name in its place. */
  readonly callerFields: Readonly<Record<string, string>>;
  /**
   * The caller's JSON body from a completed chat answer (`completeChat`). `request` is the caller's own, which some fields
   * echo.
   */
  responseFromChat(answer: JsonObject, identity: ResponseIdentity, request: JsonObject): JsonObject;
  /** Writes chat chunks, including incomplete ones; usage may come alone or with the last choice. */
  streamFromChat(identity: ResponseIdentity, request: JsonObject): StreamWriter;

  /**
   * Converts a chat request whose model and output cap are set. Throws `invalidValue` naming the chat field that cannot be
   * converted.
   */
  requestFromChat(request: JsonObject, target?: Pick<UpstreamTarget, "quirks" | "hiddenReasoning">): ConvertedRequest;
  /** The provider's whole answer as a chat.completion object. */
  responseToChat(answer: JsonObject): JsonObject;
  /** The provider's stream events (parsed JSON) as chat.completion.chunk objects. */
  streamToChat(): { write(event: JsonObject): readonly JsonObject[]; usage(soFar?: boolean): unknown };

  /** Handles providers that speak the caller's format: only the model id, the output cap and ignored parameters change. */
  readonly native: {
    prepare(request: JsonObject, target: UpstreamTarget, ignored?: IgnoredParams): JsonObject;
    /** A step of `prepare`: removes the reasoning state of models of other formats, which the provider refuses. */
    withoutForeignState?(request: JsonObject, model: string): JsonObject;
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
