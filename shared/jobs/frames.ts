/**
 * The reply protocol: what a worker writes to the reply stream of the API instance that waits (ARCHITECTURE 3 and 4).
 * `data` is text in the caller's own format: of a `chunk` one or more whole events (or a part of a long JSON body),
 * of `final` the last of it, of `error` the JSON of `ErrorFields`.
 */
export interface Frame {
  readonly requestId: string;
  /** Counts from 0 without a gap. -1 stands outside the count: a later delivery says how the call ended. */
  readonly seq: number;
  readonly kind: "chunk" | "final" | "error";
  readonly data: string;
  /** Which attempt wrote it. Absent outside the count. */
  readonly attempt?: string;
  readonly outcome?: Outcome;
}

/** What the API learns beside the text, with the last frame but for the headers. */
export interface Outcome {
  /** Nano-USD charged, as a decimal string. */
  readonly cost?: string;
  /** Tokens that count against the key's limit. */
  readonly tokens?: number;
  /** A cost stands, but the answer died with its worker: the API refunds it. */
  readonly answerLost?: true;
  /** Of an error: what closes a stream that has begun, where that is more than the error itself. */
  readonly ending?: string;
  /** With the first frame: headers for the caller. */
  readonly headers?: Readonly<Record<string, string>>;
}

export const limitBytes = 256 * 1024;
/** In UTF-16 units: none takes more than 3 bytes of UTF-8, so a part stays under the limit. */
const partUnits = Math.floor(limitBytes / 3);

/** Long text in parts that fit a frame, never through the middle of a surrogate pair. */
export function splitText(text: string): string[] {
  if (text.length <= partUnits) return [text];
  const parts: string[] = [];
  for (let at = 0; at < text.length; ) {
    let end = Math.min(at + partUnits, text.length);
    const last = text.charCodeAt(end - 1);
    if (end < text.length && last >= 0xd800 && last <= 0xdbff) end--;
    parts.push(text.slice(at, end));
    at = end;
  }
  return parts;
}

/** The fields of a stream entry, in this order. */
export const toFields = (frame: Frame): string[] => [
  "r",
  frame.requestId,
  "s",
  String(frame.seq),
  "k",
  frame.kind,
  "d",
  frame.data,
  ...(frame.attempt === undefined ? [] : ["a", frame.attempt]),
  ...(frame.outcome ? ["o", JSON.stringify(frame.outcome)] : []),
];

export function fromFields(fields: readonly string[]): Frame | undefined {
  const [r, requestId, s, seq, k, kind, d, data, ...rest] = fields;
  if (r !== "r" || s !== "s" || k !== "k" || d !== "d" || requestId === undefined || data === undefined)
    return undefined;
  if (kind !== "chunk" && kind !== "final" && kind !== "error") return undefined;
  const attempt = rest[0] === "a" ? rest[1] : undefined;
  const outcome = rest.at(-2) === "o" ? rest.at(-1) : undefined;
  return {
    requestId,
    seq: Number(seq),
    kind,
    data,
    ...(attempt !== undefined && { attempt }),
    ...(outcome !== undefined && { outcome: JSON.parse(outcome) as Outcome }),
  };
}

export const replyKey = (instance: string) => `reply:${instance}`;
export const cancelledKey = (requestId: string) => `cancelled:${requestId}`;
export const cancelChannel = "cancel";
export const disconnectChannel = "disconnect";
/** What is published, and stored under `cancelledKey` for a worker that does not listen yet. */
export const channelOf = { cancelled: cancelChannel, disconnected: disconnectChannel } as const;
/** `cancelled`: the API has ended the call. `disconnected`: its caller is gone, and it is for the worker to end it. */
export type Notice = keyof typeof channelOf;
