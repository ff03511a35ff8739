import type { Clock } from "#platform/clock";
import { type JsonObject, UpstreamFailure } from "../provider.ts";
import { isObject } from "../wire/answers.ts";
import { failureInside } from "../wire/failures.ts";

const mostText = 500;
const safety = /^(IMAGE_)?(SAFETY|PROHIBITED_CONTENT|BLOCKLIST|SPII)$/i;

const objects = (value: unknown): readonly JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : []);

/** The video that an interaction made, by `uri` or as `data`. Throws why there is none. */
export function videoIn(interaction: JsonObject, clock: Clock): JsonObject {
  const { status, steps } = interaction;
  const made = objects(steps).filter(({ type }) => type === "model_output");
  const content = made.flatMap((step) => objects(step.content));
  const video = content.find(
    ({ type, uri, data }) => type === "video" && [uri, data].some((value) => typeof value === "string" && value !== ""),
  );
  if (video && status === "completed") return video;
  const error = errorOf(interaction, made);
  if (error) throw failureInside({ error }, clock);
  const text = content.map((each) => (typeof each.text === "string" ? each.text : "")).join(" ");
  // The provider refuses in words, as if that were what was asked for.
  if (status === "completed" && text !== "")
    throw new UpstreamFailure("refused", `The model made no video. ${text.slice(0, mostText)}`);
  throw new UpstreamFailure("unavailable", `a video job that ended as ${String(status)}, without a video`);
}

/** What failed, as `failureInside` reads it; a video that was withheld is for the caller to mend. */
function errorOf(interaction: JsonObject, made: readonly JsonObject[]): JsonObject | undefined {
  const { error, errors, finish_reason } = interaction;
  const [first] = [error, ...objects(errors), ...made.map((step) => step.error)].filter(isObject);
  const isWithheld = [first?.code, first?.status, finish_reason].some(
    (value) => typeof value === "string" && safety.test(value),
  );
  if (isWithheld) return { message: first?.message ?? "The video was withheld for safety.", code: 400 };
  return first;
}
