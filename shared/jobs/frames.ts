import { Cluster } from "ioredis";
import type { RedisClient } from "#platform/redis";

/**
 * The reply protocol: frames that a worker writes to the reply stream of the waiting API instance. `data` is text in
 * the caller's own format: one or more complete events (or a part of a long JSON body) in a `chunk`, the last of them
 * in a `final`, and the JSON of `ErrorFields` in an `error`.
 */
export interface Frame {
  readonly requestId: string;
  /**
   * Counts from 0 without a gap. -1 marks an unnumbered frame, in which a later delivery reports how the call ended.
   */
  readonly seq: number;
  readonly kind: "chunk" | "final" | "error";
  readonly data: string;
  /** A random id of the delivery that wrote the frame. Undefined in an unnumbered frame. */
  readonly attempt?: string;
  readonly outcome?: Outcome;
}

/** Information for the API in addition to the text. All fields except `headers` come with the last frame. */
export interface Outcome {
  /** Nano-USD charged, as a decimal string. */
  readonly cost?: string;
  /** Tokens that count against the key's limit. */
  readonly tokens?: number;
  /** The model wrote nothing. Set for text formats. */
  readonly isEmpty?: true;
  /** The total time of attempts at upstreams. */
  readonly providerMs?: number;
  /** The call was charged, but its response was lost with its worker, so the API refunds it. */
  readonly answerLost?: true;
  /** The worker could not read the call, so the API captures its cost. */
  readonly undecided?: true;
  /** The text that closes a failed stream, if more than the error itself is needed. */
  readonly ending?: string;
  /** Headers for the caller, sent with the first frame. */
  readonly headers?: Readonly<Record<string, string>>;
}

export const limitBytes = 256 * 1024;
/**
 * In UTF-16 units, none of which takes more than 3 bytes of UTF-8, so that text of this length stays under the limit. A
 * multiple of 4, so that base64 is split between its groups.
 */
export const limitUnits = Math.floor(limitBytes / 12) * 4;

/** Splits long text into parts that fit a frame, never inside a surrogate pair. */
export function splitText(text: string): string[] {
  if (text.length <= limitUnits) return [text];
  const parts: string[] = [];
  for (let at = 0; at < text.length; ) {
    let end = Math.min(at + limitUnits, text.length);
    const last = text.charCodeAt(end - 1);
    if (end < text.length && last >= 0xd800 && last <= 0xdbff) end--;
    parts.push(text.slice(at, end));
    at = end;
  }
  return parts;
}

/** Encodes a frame as a field of a stream entry, which holds frames of many calls. Only `outcome` may have spaces. */
export function toField({ kind, requestId, seq, attempt, outcome, data }: Frame): [name: string, value: string] {
  const name = `${kind} ${requestId} ${seq} ${attempt ?? ""} ${outcome ? JSON.stringify(outcome) : ""}`;
  return [name, data];
}

const frameName = /^(chunk|final|error) (\S+) (-?\d+) (\S*) (.*)$/s;

export function fromField(name: string, data: string): Frame | undefined {
  const [, kind, requestId, seq, attempt, outcome] = frameName.exec(name) ?? [];
  if (kind === undefined || requestId === undefined) return undefined;
  return {
    requestId,
    seq: Number(seq),
    kind: kind as Frame["kind"],
    data,
    ...(attempt && { attempt }),
    ...(outcome && { outcome: JSON.parse(outcome) as Outcome }),
  };
}

/** An instance renews its reply stream every second. If it has not for this long, the stream has expired. */
export const registrationMs = 30_000;
/**
 * If an instance has not renewed for this long, no more calls are run for it. Longer than the renewal interval of
 * versions that renew every 5 s.
 */
export const silentMs = 6_000;

/** Converts the remaining time of a reply stream, as PTTL returns it, to the time since its last renewal. */
export const silenceMs = (remainingMs: number) => registrationMs - remainingMs;

export const replyKey = (instance: string) => `reply:${instance}`;
export const cancelledKey = (requestId: string) => `cancelled:${requestId}`;
/** A notice is also stored under `cancelledKey`, for a worker that is not listening yet. */
export const channelOf = { cancelled: "cancel", disconnected: "disconnect" } as const;
/** `cancelled`: the API has ended the call. `disconnected`: its caller has, and the worker decides how it ends. */
export type Notice = keyof typeof channelOf;

/** Channels through which an API instance throttles the reply to a caller who reads more slowly than it is written. */
export const paces = ["pause", "resume"] as const;
export type Pace = (typeof paces)[number];
/** A pause that is not repeated ends automatically, because the message that ends it may be lost. */
export const pauseMs = 5_000;

/**
 * Returns true if a lost connection may have dropped the response to a command. ioredis repeats such commands itself,
 * but it rejects the rest of a partially answered pipeline and the pending commands when the last node of a cluster is
 * lost.
 */
export function isUnanswered(redis: RedisClient, error: unknown): boolean {
  const { name, message } = error as Error;
  if (name === "AbortError") return true;
  return redis instanceof Cluster && message === "Connection is closed." && !hasEnded(redis);
}

/** Returns true if this process ended the connection. */
const hasEnded = ({ status }: Cluster) => status === "end" || status === "disconnecting";
