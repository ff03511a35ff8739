import type { Codec, Format } from "#formats";
import type { PaidJobName } from "#jobs";

export interface PaidRoute {
  readonly job: PaidJobName;
  readonly endpoint: string;
  readonly codec: Codec;
  /** What the caller speaks, of a call that is answered in text. */
  readonly format?: Format;
  /** Of a stream in Gemini's format: one JSON array. */
  readonly framing?: "array";
  /** Headers of the caller's that the provider of the format reads. */
  readonly passed?: readonly string[];
  /** It costs nothing, however long it is, and ignores an `Idempotency-Key`. */
  readonly isFree?: true;
  /** The model, where the path names it and not the body. */
  readonly model?: string;
  /** Without an `Idempotency-Key` it ends after `syncTimeoutMs`. */
  readonly endsAtSyncTimeout?: true;
  /** Without a key it may be paid for by x402. */
  readonly payable?: true;
}
