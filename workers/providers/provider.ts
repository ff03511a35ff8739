import type { AddressParts, Quirks, Task, Upstream, Usage } from "#catalog";
import type { ProviderCode } from "#errors";
import type { Format } from "#formats";
import type { JsonObject } from "#json";
import type { Logger } from "#platform/logger";
import type { Span } from "#platform/observability/tracing";
import type { Environment } from "#platform/process/secret-files";

/** An upstream of the catalog, with its address and credential: the operator's, or a customer's own. */
export interface UpstreamEndpoint extends Pick<Upstream, "concurrency" | "storesAnswers"> {
  readonly formats: readonly Format[];
  /** Quirks of an OpenAI-compatible server, or of a cloud. */
  readonly quirks?: Pick<Quirks, "stream_usage" | "whole_answer_cap" | "api_version">;
  /** Complete: the parts of a cloud's address are in their places. */
  readonly baseUrl: string;
  readonly apiKey: string | undefined;
  /** The parts of a cloud's address. */
  readonly parts: AddressParts;
  /** The names of deployments at Azure, keyed by the catalog's name for the model there. */
  readonly deployments?: Readonly<Record<string, string>> | undefined;
  /**
   * The environment, in which the identity of the machine is found if `apiKey` is the word `identity`. Undefined for the key
   * of a customer, who must not act as the operator.
   */
  readonly env: Environment | undefined;
}

export interface UpstreamCall {
  /** The upstream's own name for the model. */
  readonly model: string;
  /**
   * The body of a text call is in its `format`, with the output cap set; other bodies have the shape that the method
   * documents.
   */
  readonly body: JsonObject;
  /** Once aborted, the call rejects with its reason at once and releases everything that it holds. */
  readonly signal: AbortSignal;
  /** Counts memory that an answer takes until the call ends. Throws 503 if there is no memory for it now. */
  readonly reserveMemory: (bytes: number) => void;
  readonly log: Logger;
  /** The parent of the spans of its HTTP requests. */
  readonly span?: Span | undefined;
}

/** A call that is answered in text, in a format that the provider speaks. */
export interface TextCall extends UpstreamCall {
  readonly format: Format;
  /** The caller's headers that providers of this format read; empty if the caller speaks another format. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A file that the caller uploaded. Its owner and expiry have been checked. */
export interface InputFile {
  /** The id `upl_...`, as in the input. */
  readonly id: string;
  /** The field that names it, for errors. */
  readonly param: string;
  readonly mime: string;
  readonly kind: "image" | "video" | "audio";
  readonly bytes: number;
  /** A signed address from which the provider can fetch the file; undefined if storage cannot be reached from outside. */
  readonly link: string | undefined;
  /**
   * Reads the whole file. Throws 400 naming the field if it is larger than the limit, and 503 if there is no memory for it
   * now.
   */
  read(limitBytes: number): Promise<Buffer>;
  /** Reads the file as base64, of which a request will hold `times` copies. */
  base64(limitBytes: number, times?: number): Promise<string>;
  /** Releases the memory of the content, which is otherwise held until the call ends. */
  release(): void;
}

/** A call that generates files (images, video, audio), or reads one (transcription). */
export interface GenerationCall {
  readonly task: Task;
  /** The upstream's own name for the model. */
  readonly model: string;
  /** Checked against the model's input schema. It has upload ids where the provider needs links or bytes. */
  readonly input: JsonObject;
  /** Every upload that the input names, keyed by id. */
  readonly uploads: ReadonlyMap<string, InputFile>;
  /** The provider job that an earlier delivery of this call submitted here: poll it and submit nothing. */
  readonly job: string | undefined;
  /**
   * Takes the percentage of a running job that its provider has told, which may be anything, as often as it is told. Omitted
   * if nobody can see it.
   */
  reportProgress?(percent: unknown): void;
  /** Resolves once the job id is stored: before that, the job is lost if the worker dies. */
  remember(job: string): Promise<void>;
  /** Stores one generated file. A body in parts is never whole in memory. */
  store(body: Buffer | AsyncIterable<Buffer>, about?: JsonObject): Promise<void>;
  /**
   * The length of a recording in seconds. `id` is the upload's. Returns undefined if the length cannot be determined. Throws
   * 503 if too many recordings wait.
   */
  readonly secondsOf: (bytes: Buffer, mime: string, id?: string) => Promise<number | undefined>;
  readonly reserveMemory: UpstreamCall["reserveMemory"];
  /**
   * Once aborted, the call rejects with its reason at once and releases everything that it holds. The reason is an `Aborted`,
   * unless a deadline of the upstream has passed.
   */
  readonly signal: AbortSignal;
  /**
   * Aborted once the caller has disconnected. A job that its provider cancels without billing it is then canceled, and the
   * call rejects with the reason; everything else runs to its end, because it has to be paid.
   */
  readonly disconnected: AbortSignal;
  readonly log: Logger;
  readonly span?: Span | undefined;
}

export interface Generated {
  /** Everything but the files: a transcript, for example. */
  readonly output: JsonObject;
  /** The amount that the provider delivered, in the units of the model's prices. */
  readonly usage: Usage;
}

/** A provider's functions for generation calls, by task. */
export type Tasks<T> = Readonly<Partial<Record<Task, (context: T, call: GenerationCall) => Promise<Generated>>>>;

export async function runTask<T>(tasks: Tasks<T>, context: T, call: GenerationCall): Promise<Generated> {
  const run = tasks[call.task];
  if (!run) throw new UpstreamFailure("misconfigured", `this kind of upstream has no ${call.task}`);
  return run(context, call);
}

/**
 * Each method fails with `UpstreamFailure`, with the signal's reason, or with a ServiceError, which goes to the caller and
 * does not count as a failure of the upstream. Deadlines are the caller's: it aborts the signal.
 */
export interface Provider {
  /** The supported formats; never empty. A call in any other format is converted to the first. */
  readonly speaks: readonly Format[];
  /** The whole answer, in the format of the call. */
  answer(call: TextCall): Promise<JsonObject>;
  /**
   * The events, parsed, in the format of the call. Events that arrive together are delivered as one list, because each list
   * costs turns of the event loop; it is never empty. Throws if the stream ends without its format's last event.
   */
  stream(call: TextCall): AsyncIterable<readonly JsonObject[]>;
  /** Tokens of the request, counted by the provider. Providers without such an endpoint omit it. */
  count?(call: TextCall): Promise<number>;
  /** A free request that fails unless the provider accepts the credential. */
  check?(call: Pick<UpstreamCall, "signal" | "log">): Promise<void>;
  /** The list of embeddings, in the shape of OpenAI's. */
  embed(call: UpstreamCall): Promise<JsonObject>;
  /** Results in the shape of OpenAI's moderations. Providers without moderations omit it. */
  moderate?(call: UpstreamCall): Promise<JsonObject>;
  /** Results in the shape of Cohere's or Jina's rerank, with the usage of either. */
  rerank?(call: UpstreamCall): Promise<JsonObject>;
  /** Passes files to `store` as they arrive. */
  generate(call: GenerationCall): Promise<Generated>;
  /** Set if the provider takes batches of calls. */
  readonly batches?: ProviderBatches;
  /** Set if text calls may name uploads by a link that the provider fetches; otherwise they carry the bytes. */
  readonly takesLinks: boolean;
  close(): Promise<void>;
}

export type BatchContext = Pick<UpstreamCall, "signal" | "log">;

export interface BatchRequest {
  /** At most 64 letters, digits, `_` and `-`. */
  readonly customId: string;
  /** The path of its endpoint below the base address. */
  readonly path: string;
  readonly body: JsonObject;
}

/** The requests of one batch: of one model and one path. */
export interface BatchRequests {
  /** Our id of the batch. */
  readonly id: string;
  readonly lines: readonly BatchRequest[];
}

export interface BatchResult {
  readonly customId: string;
  /** Undefined for a request that was not run. */
  readonly answer: JsonObject | UpstreamFailure | undefined;
  /** The size of its line. */
  readonly bytes: number;
}

/** Answers a request in place of the provider. Throws `UpstreamFailure`. */
export type AnswerRequest = (request: { readonly path: string; readonly json?: object }) => Promise<JsonObject>;

/** Batches of a provider. Each method fails as those of `Provider` do. */
export interface ProviderBatches {
  /** The methods of the provider that make one request, which `send` answers. */
  through(send: AnswerRequest): Pick<Provider, "answer" | "embed">;
  /** Resolves with the provider's id of the batch. */
  submit(requests: BatchRequests, call: BatchContext): Promise<string>;
  /**
   * Finds a batch that was submitted after `since` (Unix milliseconds) without its answer having arrived. Omitted if the
   * provider cannot tell whose a batch is.
   */
  find?(id: string, since: number, call: BatchContext): Promise<string | undefined>;
  /** Tells whether all results are there that there will be. */
  hasEnded(id: string, call: BatchContext): Promise<boolean>;
  results(id: string, call: BatchContext): AsyncIterable<BatchResult>;
  cancel(id: string, call: BatchContext): Promise<void>;
  /** Deletes what the provider stores of the batch. */
  discard(id: string, call: BatchContext): Promise<void>;
}

/**
 * refused: the request is at fault; the caller gets the message, `code` and `param`, and no other upstream is tried unless
 * the limit is that host's own.
 * busy: the upstream works and requests a cooldown of `retryAfterMs`.
 * unavailable: it cannot be reached, broke off, or its answer is invalid.
 * timeout: it was too slow.
 * misconfigured: it does not accept the operator's address, key, model or payment.
 */
export type FailureKind = "refused" | "busy" | "unavailable" | "timeout" | "misconfigured";

type FailureDetails = Partial<
  Pick<
    UpstreamFailure,
    "status" | "param" | "code" | "isHostLimit" | "retryAfterMs" | "unreachable" | "isOutOfCredit" | "isForbidden"
  >
>;

export class UpstreamFailure extends Error {
  override readonly name = "UpstreamFailure";
  readonly kind: FailureKind;
  readonly status: number | undefined;
  readonly param: string | undefined;
  /** The code of a refusal, if callers may see it. */
  readonly code: ProviderCode | undefined;
  /** Another server of the same model may take the request. */
  readonly isHostLimit: boolean | undefined;
  readonly retryAfterMs: number | undefined;
  /** No connection could be made, so the request cannot be the reason. */
  readonly unreachable: true | undefined;
  /** The account at the provider has no credit, or is closed. */
  readonly isOutOfCredit: true | undefined;
  /** The credential is known, but must not be used for this, although the status is not 403. */
  readonly isForbidden: true | undefined;

  constructor(kind: FailureKind, message: string, { cause, ...details }: FailureDetails & { cause?: unknown } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
    Object.assign(this, details);
  }

  /** The same failure with another text, and without its cause. */
  withMessage(message: string): UpstreamFailure {
    const { kind, status, param, code, isHostLimit, retryAfterMs, unreachable, isOutOfCredit, isForbidden } = this;
    return new UpstreamFailure(kind, message, {
      status,
      param,
      code,
      isHostLimit,
      retryAfterMs,
      unreachable,
      isOutOfCredit,
      isForbidden,
    });
  }

  /** The same failure naming the field as the caller knows it. */
  withParam(param: string | undefined): UpstreamFailure {
    const { kind, message, status, code } = this;
    return new UpstreamFailure(kind, message, { status, code, param });
  }
}

/** A provider's text may quote a prompt, or the key of a customer, so it is not logged here. */
export const shownInLog = (error: unknown) =>
  error instanceof UpstreamFailure ? { kind: error.kind, status: error.status } : { err: (error as Error).message };

/** The request is at fault; `param` names the field, if a single field is. */
export const refusal = (message: string, param?: string): UpstreamFailure =>
  new UpstreamFailure("refused", message, { param });

/** The method of an upstream that generates only text, or only media, for all other calls. */
export const generatesOnly = (kind: "text" | "media") => () =>
  Promise.reject(new UpstreamFailure("misconfigured", `this kind of upstream generates only ${kind}`));

/**
 * The reason why a call was ended from outside: its caller disconnected; the API has ended it; the API instance that waited
 * for the answer is gone; its deadline has passed; the queue gave its job to another worker (lost); this worker is stopping.
 */
export type AbortCause = "disconnected" | "ended" | "gone" | "deadline" | "lost" | "shutdown";

export class Aborted extends Error {
  override readonly name = "Aborted";
  override readonly cause: AbortCause;
  constructor(cause: AbortCause) {
    super(`the call was aborted: ${cause}`);
    this.cause = cause;
  }
}

/** Tells whether another worker has the call, or will get it. */
export const isHandedOver = ({ reason }: { readonly reason: unknown }): boolean =>
  reason instanceof Aborted && (reason.cause === "lost" || reason.cause === "shutdown");
