import type { Response } from "express";
import type { Codec } from "#formats";
import type { PaidCall, PaidJobName } from "#jobs";
import type { Caller } from "#keys";

/** One paid call from its admission to its last byte. */
export interface Opening {
  readonly job: PaidJobName;
  readonly payload: Omit<PaidCall, "body">;
  readonly caller: Caller;
  readonly takenTokens: number;
  readonly mostTokens: number;
  /** When a caller who came with an `Idempotency-Key` is told to come again: unix milliseconds. */
  readonly answerBy?: number;
  readonly codec: Codec;
  readonly res: Response;
}

export interface OpenCall extends Opening {
  stopExpecting(): void;
  nextSeq: number;
  /** Pieces of a JSON answer that came in several frames. */
  parts: string[];
  lastWriteAt: number;
  /** Bytes that the caller has taken, and since when it has taken no more. */
  sent: { readonly bytes: number; readonly at: number };
  /** The attempt whose frames these are. */
  attempt?: string;
  /** Something but pings was written. */
  begun: boolean;
  stored: boolean;
  enqueued: boolean;
  left: boolean;
  /** Being told that the caller left, or told: `leave` is tried until the workers know. */
  leaving: boolean;
  /** An end is being decided here; frames may still win. */
  givingUp: boolean;
  /** The end is being written: the call is over once the caller has it, or is gone. */
  answered?: { readonly status: number; readonly code?: string };
  ended: boolean;
  usedTokens: number;
}

export const openCall = (opening: Opening, now: number): OpenCall => ({
  ...opening,
  stopExpecting: () => {},
  nextSeq: 0,
  parts: [],
  lastWriteAt: now,
  sent: { bytes: 0, at: now },
  begun: false,
  stored: false,
  enqueued: false,
  left: opening.res.closed,
  leaving: false,
  givingUp: false,
  ended: false,
  usedTokens: 0,
});

/** Its answer is kept under an `Idempotency-Key`: leaving it ends nothing, and what it cost stands. */
export const isKept = ({ payload }: OpenCall): boolean => payload.idempotencyKeyId !== undefined;

/** Nothing that comes now changes how it ends. */
export const isOver = ({ ended, answered }: OpenCall): boolean => ended || answered !== undefined;
