import type { Task, Usage } from "#catalog";
import type { Format } from "#formats";
import type { Logger } from "#platform/logger";

/** An upstream with the environment's values. */
export interface Target {
  readonly baseUrl: string;
  readonly apiKey: string | undefined;
  readonly concurrency: number;
  /** Always tell it to keep nothing. */
  readonly storesAnswers: boolean;
  /** Of a server of OpenAI's interface: the formats that it speaks. */
  readonly formats: readonly Format[];
}

/** One call to one upstream. */
export interface UpstreamCall {
  /** The upstream's own name for the model. */
  readonly model: string;
  /** Parsed JSON: of a text call in its `format`, the output cap set; else in the shape of OpenAI's embeddings. */
  readonly body: JsonObject;
  /** Once aborted, the call rejects with its reason at once and lets go of everything. */
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** A call that is answered in text, in a format that the provider speaks. */
export interface TextCall extends UpstreamCall {
  readonly format: Format;
  /** Of the caller's headers those that the provider of this format reads; only where the caller speaks it. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A file that the caller uploaded, as a provider may use it. Checked for owner and life. */
export interface InputFile {
  /** `upl_...`, as it stands in the input. */
  readonly id: string;
  /** The field that names it, for errors. */
  readonly param: string;
  readonly mime: string;
  readonly kind: "image" | "video" | "audio";
  readonly bytes: number;
  /** A signed address that the provider can fetch it from; undefined where storage cannot be reached from outside. */
  readonly link: string | undefined;
  /**
   * All of it. Throws 400 naming the field if it has more bytes than the provider takes, and 503 if there is no memory for
   * it now.
   */
  read(limitBytes: number): Promise<Buffer>;
  /** The same in base64, to be written into a request so many times. */
  base64(limitBytes: number, times?: number): Promise<string>;
  /** What was read is no longer used. Else its memory is given back when the call ends. */
  release(): void;
}

/** A call that makes files: images, video, audio; or reads one (transcription). */
export interface GenerationCall {
  readonly task: Task;
  /** The upstream's own name for the model. */
  readonly model: string;
  /** Checked against the model's input schema. Upload ids still stand in it. */
  readonly input: JsonObject;
  /** By id: every upload that the input names. */
  readonly uploads: ReadonlyMap<string, InputFile>;
  /** The provider's job that an earlier delivery of this call submitted here: go on with it, submit nothing. */
  readonly job: string | undefined;
  /** Resolves once the job id is kept: what is submitted before that is lost if the worker dies. */
  remember(job: string): Promise<void>;
  /** Keeps one file that was made, as it comes; never whole in memory if it comes in pieces. */
  keep(body: Buffer | AsyncIterable<Buffer>, about?: JsonObject): Promise<void>;
  /** Says that so much of an answer is held in memory, until the call ends. Throws 503 if there is no memory for it now. */
  readonly hold: (bytes: number) => void;
  /** Once aborted, the call rejects with its reason at once and lets go of everything. */
  readonly signal: AbortSignal;
  /**
   * Aborted once nobody waits for the answer any more. Then a job that its provider cancels without billing it is cancelled,
   * and the call rejects with the reason; everything else goes on to its end, because it has to be paid.
   */
  readonly disconnected: AbortSignal;
  readonly log: Logger;
}

export interface Generated {
  /** What there is beside the files: a transcript, a revised prompt... */
  readonly output: JsonObject;
  /** What the provider delivered, in the units that the model is priced by. */
  readonly usage: Usage;
}

export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Each method fails with `UpstreamFailure`, with the signal's reason, or with a ServiceError that goes to the caller as it
 * is and says nothing of the upstream. Deadlines are not its affair.
 */
export interface Provider {
  /** Never empty. A call in a format that is not among them is translated into the first. */
  readonly speaks: readonly Format[];
  /** The whole answer, as the format has it. */
  answer(call: TextCall): Promise<JsonObject>;
  /**
   * The events as the format has them, parsed; those that came together in one list, never an empty one. Each list costs
   * some turns of the event loop on its way, each event in it none. A stream that ends without its format's end has failed.
   */
  stream(call: TextCall): AsyncIterable<readonly JsonObject[]>;
  /** Tokens of the request as the provider counts them: `body` is what its own endpoint takes. Absent where there is none. */
  count?(call: TextCall): Promise<number>;
  /** The list of embeddings. */
  embed(call: UpstreamCall): Promise<JsonObject>;
  /** Files go to `keep` as they come; what is returned is the rest. */
  generate(call: GenerationCall): Promise<Generated>;
  /** Bodies may name uploads by a link that the provider fetches; else their bytes are put in. */
  readonly takesLinks: boolean;
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
  /** No connection came about: nothing that a request says can be the reason. */
  readonly unreachable?: true;
  readonly cause?: unknown;
}

export class UpstreamFailure extends Error {
  override readonly name = "UpstreamFailure";
  readonly kind: FailureKind;
  readonly status?: number;
  readonly param?: string;
  readonly retryAfterMs?: number;
  readonly unreachable?: true;

  constructor(kind: FailureKind, message: string, { cause, ...details }: FailureDetails = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
    Object.assign(this, details);
  }
}
