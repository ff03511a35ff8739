import { isObject, type JsonObject } from "#json";
import type { Clock } from "#platform/clock";
import { failureInside } from "../http/failures.ts";
import type { ProviderClient } from "../http/provider-client.ts";
import type { StreamRules } from "../http/read-stream.ts";
import { type GenerationCall, refusal, UpstreamFailure } from "../provider.ts";

const areCandidates = (value: unknown): value is readonly JsonObject[] => Array.isArray(value) && value.every(isObject);

/** The reason why a prompt got no answer. Returns undefined if it got one. */
function blockReasonOf({ promptFeedback, candidates }: JsonObject): string | undefined {
  const { blockReason } = isObject(promptFeedback) ? promptFeedback : {};
  const isBlocked = typeof blockReason === "string" && blockReason !== "" && !blockReason.endsWith("UNSPECIFIED");
  return isBlocked && !(Array.isArray(candidates) && candidates.length > 0) ? blockReason : undefined;
}

/** Throws unless the answer has candidates or says that the prompt was blocked. */
export function checkAnswer(answer: JsonObject, clock: Clock): JsonObject {
  // Some proxies answer 200 with an error in the body.
  if (answer.error != null) throw failureInside(answer, clock);
  const { candidates } = answer;
  if (areCandidates(candidates) && candidates.length > 0) return answer;
  if (candidates === undefined || areCandidates(candidates)) if (blockReasonOf(answer) !== undefined) return answer;
  throw new UpstreamFailure("unavailable", "an answer without candidates");
}

const hasEnded = ({ finishReason }: JsonObject): boolean =>
  typeof finishReason === "string" && finishReason !== "" && finishReason !== "FINISH_REASON_UNSPECIFIED";

/** The format has no last event: a stream ends with a candidate's finish reason, or when its prompt is blocked. */
export const streamRules: StreamRules = {
  failure: (event) => (event.error == null ? undefined : event),
  check({ candidates }) {
    if (candidates !== undefined && !areCandidates(candidates))
      throw new UpstreamFailure("unavailable", "an event whose candidates are not a list of objects");
  },
  ends: (event) =>
    ((event.candidates as readonly JsonObject[] | undefined) ?? []).some(hasEnded) ||
    blockReasonOf(event) !== undefined,
};

const maxTextCharacters = 500;

/** Finish reasons that blame the prompt, or the content that the model generated from it. */
const refusals =
  /^(IMAGE_)?(SAFETY|PROHIBITED_CONTENT|RECITATION|BLOCKLIST|SPII)$|^(LANGUAGE|MODEL_ARMOR|NO_IMAGE|IMAGE_NONE)$/;

/** The first file of that kind in generateContent's answer. Throws the reason if there is none. */
export async function generateInline(
  client: ProviderClient,
  call: GenerationCall,
  json: JsonObject,
  kind: "image" | "audio",
) {
  const answer = await client.sendForJson({ path: methodPath(call.model, "generateContent"), json }, call);
  const { candidates } = checkAnswer(answer, client.clock);
  const [candidate = {}] = (candidates ?? []) as readonly JsonObject[];
  const { parts } = isObject(candidate.content) ? candidate.content : {};
  // Thoughts may contain drafts of the image.
  const answered = (Array.isArray(parts) ? parts : []).filter(isObject).filter(({ thought }) => thought !== true);
  for (const { inlineData } of answered) {
    const { mimeType, data } = isObject(inlineData) ? inlineData : {};
    if (typeof mimeType !== "string" || !mimeType.startsWith(`${kind}/`) || typeof data !== "string") continue;
    const bytes = Buffer.from(data, "base64");
    if (bytes.length > 0) return { mime: mimeType, bytes };
  }
  throw withoutMedia(answer, candidate, answered, kind);
}

function withoutMedia(answer: JsonObject, candidate: JsonObject, parts: readonly JsonObject[], kind: string) {
  const { promptFeedback } = answer;
  const { blockReasonMessage } = isObject(promptFeedback) ? promptFeedback : {};
  const blockReason = blockReasonOf(answer);
  if (blockReason !== undefined) return explained(`The prompt was blocked: ${blockReason}.`, blockReasonMessage);
  const { finishReason, finishMessage } = candidate;
  const reason = typeof finishReason === "string" ? finishReason.slice(0, 100) : "";
  const text = parts.map((part) => (typeof part.text === "string" ? part.text : "")).join("");
  if (refusals.test(reason)) return explained(`The model made no ${kind}: ${reason}.`, finishMessage ?? text);
  if (reason === "STOP" && text !== "") return explained(`The model made no ${kind}.`, text);
  return new UpstreamFailure("unavailable", `an answer without ${kind} (${reason})`);
}

const explained = (message: string, more: unknown) =>
  refusal(typeof more === "string" && more !== "" ? `${message} ${more.slice(0, maxTextCharacters)}` : message);

/** The model's path, `models/...`; the catalog's name may already have the prefix. */
export const modelPath = (model: string): string => `models/${model.replace(/^models\//, "")}`;

/** The path of a model's method, below the version. */
export const methodPath = (model: string, method: string): string =>
  `/models/${encodeURIComponent(model.replace(/^models\//, ""))}:${method}`;
