import { given, type JsonObject, text } from "#formats";
import { contentText, reasoningText } from "../chat/fields.ts";
import { failureOf } from "../failed-choice.ts";
import { encodeReasoning } from "../reasoning-state.ts";
import { argumentsOf } from "../tool-calls.ts";
import { signatureOf } from "./reasoning.ts";

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly args: unknown;
  readonly signature: string;
}

/** The signature that brings the reasoning of an answer back with the next turn; only models that call tools demand it. */
export const reasoningSignature = (reasoning: string, details: readonly JsonObject[]): string =>
  reasoning || details.length > 0 ? encodeReasoning({ reasoning_content: reasoning, reasoning_details: details }) : "";

/** As Google's models sign: the first call, else the last text. */
function signParts(parts: readonly JsonObject[], signature: string): readonly JsonObject[] {
  if (!signature || parts.some(({ thoughtSignature }) => thoughtSignature)) return parts;
  const call = parts.findIndex(({ functionCall }) => functionCall !== undefined);
  const at = call >= 0 ? call : parts.findLastIndex(({ thought }) => thought !== true);
  if (at < 0) return [...parts, { text: "", thoughtSignature: signature }];
  return parts.map((part, p) => (p === at ? { ...part, thoughtSignature: signature } : part));
}

/** The parts of a message or a delta, besides its calls. */
export function textParts(message: JsonObject, withThoughts: boolean): JsonObject[] {
  const thought = withThoughts ? reasoningText(message) : "";
  const content = contentText(message["content"]) + text(message["refusal"]);
  const signature = signatureOf(message);
  return [
    ...(thought ? [{ text: thought, thought: true }] : []),
    ...(content || signature ? [{ text: content, ...(signature && { thoughtSignature: signature }) }] : []),
  ];
}

/** Clients reject candidates without parts. */
export const contentOf = (parts: readonly JsonObject[]): JsonObject => ({
  parts: parts.length > 0 ? parts : [{ text: "" }],
  role: "model",
});

/** A candidate's content and end. A call whose arguments are not an object has no place in the format but the finish message. */
export function candidateOf(
  parts: readonly JsonObject[],
  calls: readonly ToolCall[],
  end: JsonObject,
  hasRefusal: boolean,
  signature: string,
): JsonObject {
  const callParts: JsonObject[] = [];
  const malformed: string[] = [];
  for (const { id, name, args: input, signature } of calls) {
    const args = argumentsOf(input);
    if (args) callParts.push(given({ functionCall: { id, name, args }, thoughtSignature: signature || undefined }));
    else malformed.push(`${name}(${text(input)})`);
  }
  const content = contentOf(signParts([...parts, ...callParts], signature));
  const failure = failureOf(end);
  if (failure !== undefined) return { content, finishReason: "OTHER", finishMessage: failure };
  if (end["finish_reason"] === "length") return { content, finishReason: "MAX_TOKENS" };
  if (end["finish_reason"] === "content_filter" || hasRefusal) return { content, finishReason: "SAFETY" };
  if (malformed.length === 0) return { content, finishReason: "STOP" };
  const finishMessage = `Malformed function call: ${malformed.join(" ")}`;
  return { content, finishReason: "MALFORMED_FUNCTION_CALL", finishMessage };
}
