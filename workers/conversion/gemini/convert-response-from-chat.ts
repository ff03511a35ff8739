import { formedRequest, given, type JsonObject, list, number, object, text } from "#formats";
import { contentText, reasoningText } from "../chat/fields.ts";
import { type ResponseIdentity } from "../converter.ts";
import { argumentsOf } from "../tool-calls.ts";
import { indexOf } from "./convert-response-to-chat.ts";
import { convertUsageFromChat } from "./convert-usage.ts";
import { mapFinishReasonFromChat } from "./map-finish-reason.ts";
import { toolCallId } from "./prepare-tools.ts";
import { signatureOf } from "./reasoning.ts";

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly args: unknown;
  readonly signature: string;
}

/** Whether the caller requested thoughts: without `includeThoughts` an answer has none. */
export function includesThoughts(request: JsonObject): boolean {
  const { generationConfig } = object(formedRequest(request));
  return object(object(generationConfig)["thinkingConfig"])["includeThoughts"] === true;
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
  finishReason: unknown,
  hasRefusal: boolean,
): JsonObject {
  const callParts: JsonObject[] = [];
  const malformed: string[] = [];
  for (const { id, name, args: input, signature } of calls) {
    const args = argumentsOf(input);
    if (args) callParts.push(given({ functionCall: { id, name, args }, thoughtSignature: signature || undefined }));
    else malformed.push(`${name}(${text(input)})`);
  }
  return {
    content: contentOf([...parts, ...callParts]),
    ...mapFinishReasonFromChat(finishReason, { hasRefusal, malformed: malformed.join(" ") }),
  };
}

export function logprobsFromChat(logprobs: unknown): JsonObject {
  const tokens = list(object(logprobs)["content"]);
  if (tokens.length === 0) return {};
  const candidate = (token: JsonObject): JsonObject =>
    given({ token: text(token["token"]), logProbability: number(token["logprob"]) });
  return {
    logprobsResult: {
      chosenCandidates: tokens.map(candidate),
      topCandidates: tokens.map((token) => ({ candidates: list(token["top_logprobs"]).map(candidate) })),
    },
  };
}

export function convertResponseFromChat(
  response: JsonObject,
  identity: ResponseIdentity,
  request: JsonObject,
): JsonObject {
  const withThoughts = includesThoughts(request);
  const candidates = list(response["choices"]).map((choice, position) => {
    const index = indexOf(choice, position);
    const message = object(choice["message"]);
    const calls = list(message["tool_calls"]).map((call, c): ToolCall => {
      const { name, arguments: args } = object(call["function"]);
      const id = text(call["id"]) || toolCallId(identity.id, index, c);
      return { id, name: text(name), args, signature: signatureOf(call) };
    });
    return {
      ...candidateOf(textParts(message, withThoughts), calls, choice["finish_reason"], text(message["refusal"]) !== ""),
      index,
      ...logprobsFromChat(choice["logprobs"]),
    };
  });
  return {
    candidates,
    usageMetadata: convertUsageFromChat(response["usage"], { input: 0, output: 0 }),
    modelVersion: identity.model,
    responseId: identity.id,
  };
}
