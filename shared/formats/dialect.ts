import type { ServiceError } from "#errors";
import type { Loose } from "./loose.ts";
import type { UploadRef } from "./types.ts";
import type { Placed } from "./uploads.ts";

/** What an answer has of us: our model id, and what stands in where the maker left it out. */
export interface Ours {
  readonly model: string;
  /** Unix seconds. */
  readonly created: number;
  /** Made of the request's id: unique. */
  readonly id: string;
}

/** One stream on its way to the caller. */
export interface StreamWriter {
  /** Text of the events for one item (a chat chunk, or a native event); "" if it says nothing. */
  write(item: Loose): string;
  /** In chat shape, as the maker gave it, if it did. `soFar`: what it says of the prompt before it counts the output will do. */
  usage(soFar?: boolean): unknown;
  /** UTF-8 bytes of output written so far: text, reasoning, tool names and arguments. */
  outputBytes(): number;
  /** The last events of a stream that came to its end; the estimate stands in where the maker gave no usage. */
  end(estimate: TokenEstimate): string;
  /** The last events of a stream that failed, where only its writer can tell them. */
  readonly fail?: (error: ServiceError) => string;
}

export interface TokenEstimate {
  readonly input: number;
  readonly output: number;
}

/** What a request gets for the upstream that it goes to. */
export interface To {
  /** The upstream's own name for the model. */
  readonly model: string;
  /** The most output tokens of each choice. */
  readonly cap: number;
  /** The field that chat upstreams take the cap in. */
  readonly capField: "max_tokens" | "max_completion_tokens";
}

/** A request in another format, with the names of the hints that were left out (`x-ignored-params`). */
export interface Crossed {
  readonly request: Loose;
  readonly ignored: readonly string[];
}

/** The worker's face of a format: each way to and from chat-completions, the hub, and past it where both sides speak it. */
export interface Dialect {
  /** The request with the content of each upload that it names in the place of its id; before either way out. */
  placeUploads(request: Loose, placed: (ref: UploadRef) => Placed): Loose;
  /** The caller's request as a chat request. Throws `invalidValue` naming the caller's field for what changes the meaning and cannot cross. */
  toChat(request: Loose): Crossed;
  /** The caller's own name for a field of the chat request that `toChat` made, as errors name it. */
  ownField(chatField: string): string;
  /** A completed chat answer (of `completeChat`) as the caller's format has it: the whole JSON body. `request`: the caller's own, for what is echoed. */
  fromChat(answer: Loose, ours: Ours, request: Loose): Loose;
  /** Writes a stream in the caller's format from chat chunks, sloppy ones too; usage may come alone or with the last choice. */
  streamFromChat(ours: Ours, request: Loose): StreamWriter;

  /** A chat request, its model and output cap set, as this format's maker takes it. Throws `invalidValue` naming the chat field for what cannot cross. */
  fromChatRequest(request: Loose): Crossed;
  /** The maker's whole answer as a chat.completion object. */
  toChatAnswer(answer: Loose): Loose;
  /** The maker's stream events (parsed JSON, one object each) as chat.completion.chunk objects. */
  streamToChat(): { write(event: Loose): readonly Loose[]; usage(soFar?: boolean): unknown };

  /** Where the maker speaks the caller's format: nothing changes but the model id and the output cap. */
  readonly native: {
    prepare(request: Loose, to: To): Loose;
    /** The answer with our model id in the place of the maker's. */
    finish(answer: Loose, ours: Ours, estimate: TokenEstimate): Loose;
    /** Usage of an answer in chat shape, for billing. */
    usage(answer: Loose): unknown;
    /** Whole events exactly as they came but for our model id. */
    stream(ours: Ours): StreamWriter;
  };
}
