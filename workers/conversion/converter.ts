import type { ServiceError } from "#errors";
import type { JsonObject, UploadRef } from "#formats";

/** What an answer has of us: our model id, and what stands in where the provider left it out. */
export interface ResponseIdentity {
  readonly model: string;
  /** Unix seconds. */
  readonly created: number;
  /** Made of the request's id: unique. */
  readonly id: string;
}

/** An upload as it goes to a provider: by an address, which may be a data address, or as base64. */
export interface ResolvedUpload {
  readonly mime: string;
  readonly address: string;
  readonly base64: string;
}

/** One stream on its way to the caller. */
export interface StreamWriter {
  /** Text of the events for one item (a chat chunk, or a native event); "" if it says nothing. */
  write(item: JsonObject): string;
  /** In chat shape, as the provider gave it, if it did. `soFar`: what it says of the prompt before it counts the output will do. */
  usage(soFar?: boolean): unknown;
  /** UTF-8 bytes of output written so far: text, reasoning, tool names and arguments. */
  outputBytes(): number;
  /** The last events of a stream that came to its end; the estimate stands in where the provider gave no usage. */
  end(estimate: TokenEstimate): string;
  /** The last events of a stream that failed, where only its writer can tell them. */
  readonly fail?: (error: ServiceError) => string;
}

export interface TokenEstimate {
  readonly input: number;
  readonly output: number;
}

/** What a request gets for the upstream that it goes to. */
export interface UpstreamTarget {
  /** The upstream's own name for the model. */
  readonly model: string;
  /** The most output tokens of each choice. */
  readonly cap: number;
  /** The field that chat upstreams take the cap in. */
  readonly capField: "max_tokens" | "max_completion_tokens";
}

/** A request in another format, with the names of the hints that were left out (`x-ignored-params`). */
export interface ConvertedRequest {
  readonly request: JsonObject;
  readonly ignored: readonly string[];
}

/** The worker's face of a format: each way to and from chat-completions, the hub, and past it where both sides speak it. */
export interface FormatConverter {
  /** The request with the content of each upload that it names in the place of its id; before either way out. */
  resolveUploads(request: JsonObject, placed: (ref: UploadRef) => ResolvedUpload): JsonObject;
  /** The caller's request as a chat request. Throws `invalidValue` naming the caller's field for what changes the meaning and cannot cross. */
  requestToChat(request: JsonObject): ConvertedRequest;
  /** The caller's own name for a field of the chat request that `toChat` made, as errors name it. */
  callerField(chatField: string): string;
  /** A completed chat answer (of `completeChat`) as the caller's format has it: the whole JSON body. `request`: the caller's own, for what is echoed. */
  responseFromChat(answer: JsonObject, ours: ResponseIdentity, request: JsonObject): JsonObject;
  /** Writes a stream in the caller's format from chat chunks, sloppy ones too; usage may come alone or with the last choice. */
  streamFromChat(ours: ResponseIdentity, request: JsonObject): StreamWriter;

  /** A chat request, its model and output cap set, as this format's provider takes it. Throws `invalidValue` naming the chat field for what cannot cross. */
  requestFromChat(request: JsonObject): ConvertedRequest;
  /** The provider's whole answer as a chat.completion object. */
  responseToChat(answer: JsonObject): JsonObject;
  /** The provider's stream events (parsed JSON, one object each) as chat.completion.chunk objects. */
  streamToChat(): { write(event: JsonObject): readonly JsonObject[]; usage(soFar?: boolean): unknown };

  /** Where the provider speaks the caller's format: nothing changes but the model id and the output cap. */
  readonly native: {
    prepare(request: JsonObject, to: UpstreamTarget): JsonObject;
    /** The answer with our model id in the place of the provider's. */
    finish(answer: JsonObject, ours: ResponseIdentity, estimate: TokenEstimate): JsonObject;
    /** Usage of an answer in chat shape, for billing. */
    usage(answer: JsonObject): unknown;
    /** Whole events exactly as they came but for our model id. */
    stream(ours: ResponseIdentity): StreamWriter;
  };
}
