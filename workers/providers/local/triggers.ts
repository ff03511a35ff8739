import { invalidValue, noCapacity, rateLimited, type ServiceError, upstreamError, upstreamTimeout } from "#errors";
import { refusal } from "../provider.ts";

/** The effects of a message or prompt that consists of a trigger. Calls ignore those that do not concern them. */
export interface Trigger {
  /** Before the first token, or until the files are there. */
  readonly delayMs?: number;
  /** Ends the stream after so many chunks, and fails a JSON answer. */
  readonly breakAfterChunks?: number;
  /** What the model says. */
  readonly speech?: string;
  /** At most so many images, or seconds of video. */
  readonly deliver?: number;
}

/** A ServiceError goes to the caller without counting as a failure of the upstream, so no breaker opens. */
const errors: Readonly<Record<string, (param: string) => ServiceError>> = {
  400: (param) => invalidValue(param, "This is the error 400 that you asked for."),
  429: () => rateLimited("This is the error 429 that you asked for.", 1),
  502: () => upstreamError("This is the error 502 that you asked for."),
  503: () => noCapacity("This is the error 503 that you asked for.", 1),
  504: () => upstreamTimeout("This is the error 504 that you asked for."),
};

const maxDelayMs = 600_000;
const maxTokens = 100_000;

/** Throws the error that `error:<status>` requests. `param`: the field with the text. */
export function triggerOf(text: string, param: string): Trigger {
  const [, kind = "", digits] = /^(error|slow|stream-error|tokens|deliver):(\d{1,9})$/.exec(text) ?? [];
  const count = Number(digits);
  switch (kind) {
    case "slow":
      return { delayMs: Math.min(count, maxDelayMs) };
    case "stream-error":
      return { breakAfterChunks: count };
    case "tokens":
      return { speech: "token ".repeat(Math.min(count, maxTokens)).trimEnd() };
    case "deliver":
      return { deliver: count };
    case "error":
      throw errors[count]?.(param) ?? refusal(`error: takes one of ${Object.keys(errors).join(", ")}.`, param);
    default:
      return {};
  }
}

export const brokenOff = () => upstreamError("This is the broken stream that you asked for.");
