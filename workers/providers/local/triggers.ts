import { invalidValue, noCapacity, rateLimited, type ServiceError, upstreamError, upstreamTimeout } from "#errors";
import { UpstreamFailure } from "../provider.ts";

/** What a message that is nothing but a trigger makes the model do. */
export interface Trigger {
  /** Before the first token. */
  readonly delayMs?: number;
  /** Ends the stream after so many chunks, and a JSON answer altogether. */
  readonly breakAfterChunks?: number;
  readonly speech?: string;
}

/** Answered as they are: asking for an error is no failure of the model, so no breaker hears of it. */
const errors: Readonly<Record<string, (param: string) => ServiceError>> = {
  400: (param) => invalidValue(param, "This is the error 400 that you asked for."),
  429: () => rateLimited("This is the error 429 that you asked for.", 1),
  502: () => upstreamError("This is the error 502 that you asked for."),
  503: () => noCapacity("This is the error 503 that you asked for.", 1),
  504: () => upstreamTimeout("This is the error 504 that you asked for."),
};

const longestDelayMs = 600_000;
const mostTokens = 100_000;

/** Throws what `error:<status>` asks for. */
export function triggerOf(message: string): Trigger {
  const [, kind, digits] = /^(error|slow|stream-error|tokens):(\d{1,9})$/.exec(message) ?? [];
  const count = Number(digits);
  if (kind === "slow") return { delayMs: Math.min(count, longestDelayMs) };
  if (kind === "stream-error") return { breakAfterChunks: count };
  if (kind === "tokens") return { speech: "token ".repeat(Math.min(count, mostTokens)).trimEnd() };
  if (kind === undefined) return {};
  throw errorOf(count, "messages");
}

/** What a prompt that is nothing but a trigger does to a call that makes files. */
export interface MediaTrigger {
  /** How long the work takes. */
  readonly delayMs?: number;
  /** At most so many images, or seconds of video. */
  readonly deliver?: number;
}

/** Throws what `error:<status>` asks for. `param`: the field that the prompt stands in. */
export function mediaTriggerOf(prompt: string, param: string): MediaTrigger {
  const [, kind, digits] = /^(error|slow|deliver):(\d{1,9})$/.exec(prompt) ?? [];
  const count = Number(digits);
  if (kind === "slow") return { delayMs: Math.min(count, longestDelayMs) };
  if (kind === "deliver") return { deliver: count };
  if (kind === undefined) return {};
  throw errorOf(count, param);
}

function errorOf(status: number, param: string): Error {
  const known = Object.keys(errors).join(", ");
  return errors[status]?.(param) ?? new UpstreamFailure("refused", `error: takes one of ${known}.`, { param });
}

export const brokenOff = () => upstreamError("This is the broken stream that you asked for.");
