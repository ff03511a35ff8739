import type { Clock } from "#platform/clock";
import { type JsonObject, UpstreamFailure } from "../provider.ts";
import { isObject } from "../wire/answers.ts";
import { blockReason, checkAnswer } from "./answer.ts";

const mostText = 500;

/** Of a candidate that ended without what was asked for: the prompt is at fault, or what the model made of it. */
const refusals =
  /^(IMAGE_)?(SAFETY|PROHIBITED_CONTENT|RECITATION|BLOCKLIST|SPII)$|^(LANGUAGE|MODEL_ARMOR|NO_IMAGE|IMAGE_NONE)$/;

export interface InlineMedia {
  readonly mime: string;
  readonly bytes: Buffer;
}

/** The first file of that kind in a generateContent answer. Throws why there is none. */
export function inlineMedia(answer: JsonObject, kind: "image" | "audio", clock: Clock): InlineMedia {
  const { candidates } = checkAnswer(answer, clock);
  const [candidate = {}] = (candidates ?? []) as readonly JsonObject[];
  const { content } = candidate;
  const { parts } = isObject(content) ? content : {};
  // Drafts of a model that thinks in pictures are no answer.
  const said = (Array.isArray(parts) ? parts : []).filter(isObject).filter(({ thought }) => thought !== true);
  for (const { inlineData } of said) {
    const { mimeType, data } = isObject(inlineData) ? inlineData : {};
    if (typeof mimeType !== "string" || !mimeType.startsWith(`${kind}/`) || typeof data !== "string") continue;
    const bytes = Buffer.from(data, "base64");
    if (bytes.length > 0) return { mime: mimeType, bytes };
  }
  throw withoutMedia(answer, candidate, said, kind);
}

function withoutMedia(answer: JsonObject, candidate: JsonObject, said: readonly JsonObject[], kind: string) {
  const { promptFeedback } = answer;
  const { blockReasonMessage } = isObject(promptFeedback) ? promptFeedback : {};
  const blocked = blockReason(answer);
  if (blocked !== undefined) return refusal(`The prompt was blocked: ${blocked}.`, blockReasonMessage);
  const { finishReason, finishMessage } = candidate;
  const reason = typeof finishReason === "string" ? finishReason.slice(0, 100) : "";
  const text = said.map((part) => (typeof part.text === "string" ? part.text : "")).join("");
  if (refusals.test(reason)) return refusal(`The model made no ${kind}: ${reason}.`, finishMessage ?? text);
  if (reason === "STOP" && text !== "") return refusal(`The model made no ${kind}.`, text);
  return new UpstreamFailure("unavailable", `an answer without ${kind} (${reason})`);
}

const refusal = (what: string, more: unknown) =>
  new UpstreamFailure("refused", typeof more === "string" && more !== "" ? `${what} ${more.slice(0, mostText)}` : what);
