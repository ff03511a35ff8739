import type { Codec, Format } from "#formats";
import type { PaidJobName } from "#jobs";

export interface PaidRoute {
  readonly job: PaidJobName;
  readonly endpoint: string;
  readonly codec: Codec;
  /** Of a route that answers in text. */
  readonly format?: Format;
  /** Gemini's stream without `alt=sse`: one JSON array. */
  readonly framing?: "array";
  /** Headers of the caller that are sent on to the provider. */
  readonly passed?: readonly string[];
  /** Costs nothing, counts no tokens, and ignores an `Idempotency-Key`. */
  readonly isFree?: true;
  /** The model, where the path names it and not the body. */
  readonly model?: string;
  /** Its requests may refer to responses that are stored for the account. */
  readonly refersToStored?: true;
  /** Without an `Idempotency-Key` a call ends after `syncTimeoutMs`. */
  readonly endsAtSyncTimeout?: true;
  /** A call without an API key may be paid for by x402. */
  readonly payable?: true;
}
