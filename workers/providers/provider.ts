import type { Logger } from "#platform/logger";

/**
 * One call to one upstream. Bodies are parsed JSON in the chat-completions or embeddings shape; `model` already is the
 * upstream's own name for the model, and the output cap is set.
 */
export interface UpstreamCall {
  readonly body: JsonObject;
  /** Once aborted, the call rejects with its reason at once and lets go of everything. */
  readonly signal: AbortSignal;
  readonly log: Logger;
}

export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Each method fails with `UpstreamFailure`, with the signal's reason, or with a ServiceError that goes to the caller as it
 * is and says nothing of the upstream. Deadlines are not its affair.
 */
export interface Provider {
  /** The `chat.completion` object. */
  chat(call: UpstreamCall): Promise<JsonObject>;
  /**
   * The `chat.completion.chunk` objects, the one with the usage too if the upstream sends it; those that came together in
   * one list, never an empty one. Each list costs some turns of the event loop on its way, each chunk in it none.
   */
  streamChat(call: UpstreamCall): AsyncIterable<readonly JsonObject[]>;
  /** The list of embeddings. */
  embed(call: UpstreamCall): Promise<JsonObject>;
  close(): Promise<void>;
}

/**
 * refused: the request is at fault; its text and `param` are for the caller, and no other upstream is asked.
 * busy: the upstream is well and asks to be left alone for `retryAfterMs`.
 * unavailable: it cannot be reached, breaks off, or answers what is no answer.
 * timeout: it was too slow.
 * misconfigured: it does not accept the operator's address, key, model or payment.
 */
export type FailureKind = "refused" | "busy" | "unavailable" | "timeout" | "misconfigured";

interface FailureDetails {
  readonly status?: number;
  readonly param?: string;
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

export class UpstreamFailure extends Error {
  override readonly name = "UpstreamFailure";
  readonly kind: FailureKind;
  readonly status?: number;
  readonly param?: string;
  readonly retryAfterMs?: number;

  constructor(kind: FailureKind, message: string, { cause, ...details }: FailureDetails = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
    Object.assign(this, details);
  }
}
