import type { Clock } from "#platform/clock";
import { type GenerationCall, type JsonObject, UpstreamFailure } from "../provider.ts";
import { isObject } from "../wire/answers.ts";
import { failureInside } from "../wire/failures.ts";
import type { StreamRules } from "../wire/stream.ts";

/** Of any answer; one with a file in it has the file in base64. */
export const answerLimitBytes = 64 * 1024 * 1024;

/** What came, its text, the base64 in it and the bytes of that. */
const fileCopies = 4;
/** Of one with a file in it, which is held several times over until the file is kept. */
export const holdingOf =
  ({ hold }: Pick<GenerationCall, "hold">) =>
  (bytes: number): void =>
    hold(fileCopies * bytes);

const areCandidates = (value: unknown): value is readonly JsonObject[] => Array.isArray(value) && value.every(isObject);

/** Why a prompt got no answer; undefined where it did. */
export function blockReason({ promptFeedback, candidates }: JsonObject): string | undefined {
  const { blockReason: reason } = isObject(promptFeedback) ? promptFeedback : {};
  const isBlocked = typeof reason === "string" && reason !== "" && !reason.endsWith("UNSPECIFIED");
  return isBlocked && !(Array.isArray(candidates) && candidates.length > 0) ? reason : undefined;
}

/** A prompt that is blocked is an answer too. */
export function checkAnswer(answer: JsonObject, clock: Clock): JsonObject {
  // Some proxies answer 200 with an error inside.
  if (answer.error != null) throw failureInside(answer, clock);
  const { candidates } = answer;
  if (areCandidates(candidates) && candidates.length > 0) return answer;
  if (candidates === undefined || areCandidates(candidates)) if (blockReason(answer) !== undefined) return answer;
  throw new UpstreamFailure("unavailable", "an answer without candidates");
}

const hasEnded = ({ finishReason }: JsonObject): boolean =>
  typeof finishReason === "string" && finishReason !== "" && finishReason !== "FINISH_REASON_UNSPECIFIED";

/** There is no event that says that the stream is over: a candidate's reason for ending, or the prompt's block, is the last word. */
export const streamRules: StreamRules = {
  failure: (event) => (event.error == null ? undefined : event),
  check({ candidates }) {
    if (candidates !== undefined && !areCandidates(candidates))
      throw new UpstreamFailure("unavailable", "an event whose candidates are no list of objects");
  },
  ends: (event) =>
    ((event.candidates as readonly JsonObject[] | undefined) ?? []).some(hasEnded) || blockReason(event) !== undefined,
};
