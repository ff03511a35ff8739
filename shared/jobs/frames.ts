import { Cluster } from "ioredis";
import type { RedisClient } from "#platform/redis";

/**
 * The reply protocol: what a worker writes to the reply stream of the API instance that waits. `data` is text in the
 * caller's own format: of a `chunk` one or more whole events (or a part of a long JSON body), of `final` the last of it,
 * of `error` the JSON of `ErrorFields`.
 */
export interface Frame {
  readonly requestId: string;
  /** Counts from 0 without a gap. -1 is unnumbered: a later delivery says how the call ended. */
  readonly seq: number;
  readonly kind: "chunk" | "final" | "error";
  readonly data: string;
  /** Which delivery wrote it, by a random id. Absent in an unnumbered frame. */
  readonly attempt?: string;
  readonly outcome?: Outcome;
}

/** The API learns this in addition to the text. All but `headers` comes with the last frame. */
export interface Outcome {
  /** Nano-USD charged, as a decimal string. */
  readonly cost?: string;
  /** Tokens that count against the key's limit. */
  readonly tokens?: number;
  /** The total time of attempts at upstreams. */
  readonly providerMs?: number;
  /** The call was charged, but its answer was lost with its worker: the API refunds it. */
  readonly answerLost?: true;
  /** The worker could not read the call: the API decides it. */
  readonly undecided?: true;
  /** Closes a stream that failed, where that takes more than the error itself. */
  readonly ending?: string;
  /** With the first frame: headers for the caller. */
  readonly headers?: Readonly<Record<string, string>>;
}

export const limitBytes = 256 * 1024;
/**
 * In UTF-16 units: none takes more than 3 bytes of UTF-8, so text of this length stays under the limit. A multiple of 4: base64
 * is split between its groups.
 */
export const limitUnits = Math.floor(limitBytes / 12) * 4;

/** Long text in parts that fit a frame, never through the middle of a surrogate pair. */
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

/** A field of a stream entry: an entry holds the frames of any number of calls. Only `outcome` may hold spaces. */
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

/** An instance renews its reply stream each second: without a renewal for this long it is dead, and the stream is gone. */
export const registrationMs = 30_000;
/** Without a renewal for this long nothing is run for it any more. Longer than versions that renew every 5 s let it wait. */
export const silentMs = 6_000;

export const replyKey = (instance: string) => `reply:${instance}`;
export const cancelledKey = (requestId: string) => `cancelled:${requestId}`;
/** A notice is also stored under `cancelledKey`, for a worker that does not listen yet. */
export const channelOf = { cancelled: "cancel", disconnected: "disconnect" } as const;
/** `cancelled`: the API has ended the call. `disconnected`: its caller is gone, and the worker decides how it ends. */
export type Notice = keyof typeof channelOf;

/** Channels by which an API instance slows down the reply to a caller who reads more slowly than it is written. */
export const paces = ["pause", "resume"] as const;
export type Pace = (typeof paces)[number];
/** A pause that is not repeated ends by itself: the message that ends it may be lost. */
export const pauseMs = 5_000;

/**
 * True if a lost connection may have dropped the answer to a command. ioredis repeats such commands itself, but it
 * rejects the rest of a pipeline that was answered in part, and what was under way when the last node of a cluster was lost.
 */
export function isUnanswered(redis: RedisClient, error: unknown): boolean {
  const { name, message } = error as Error;
  if (name === "AbortError") return true;
  return redis instanceof Cluster && message === "Connection is closed." && !hasEnded(redis);
}

/** This process ended the connection. */
const hasEnded = ({ status }: Cluster) => status === "end" || status === "disconnecting";
