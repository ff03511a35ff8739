import { type JsonObject, list, number, object, text } from "#formats";
import type { ResponseIdentity } from "../converter.ts";
import { argumentsText } from "../tool-calls.ts";

export type ItemStatus = "in_progress" | "completed" | "incomplete";
export type ItemType = keyof typeof idPrefixes;

const idPrefixes = { reasoning: "rs", message: "msg", function_call: "fc", custom_tool_call: "ctc" } as const;

/** The unique part of the request's id. Providers check the prefix of an id, and accept at most 64 characters. */
const uniqueSuffix = ({ id }: ResponseIdentity) => id.slice(-24);
export const responseId = (identity: ResponseIdentity) => `resp_${uniqueSuffix(identity)}`;
export const itemId = (type: ItemType, identity: ResponseIdentity, outputIndex: number) =>
  `${idPrefixes[type]}_${uniqueSuffix(identity)}_${outputIndex}`;

const logprob = ({ token, logprob, bytes }: JsonObject): JsonObject => ({
  token: text(token),
  logprob: number(logprob) ?? 0,
  bytes: Array.isArray(bytes) ? bytes : [],
});

/** Unlike chat's, `bytes` and `top_logprobs` are always lists. */
export const logprobsFromChat = (content: unknown): readonly JsonObject[] =>
  list(content).map((each) => ({ ...logprob(each), top_logprobs: list(each["top_logprobs"]).map(logprob) }));

export const textPart = (text: string, logprobs: readonly JsonObject[]): JsonObject => ({
  type: "output_text",
  annotations: [],
  logprobs,
  text,
});
export const refusalPart = (refusal: string): JsonObject => ({ type: "refusal", refusal });
export const summaryPart = (text: string): JsonObject => ({ type: "summary_text", text });

export const reasoningItem = (id: string, summary: readonly JsonObject[]): JsonObject => ({
  id,
  type: "reasoning",
  summary,
});
export const messageItem = (id: string, status: ItemStatus, content: readonly JsonObject[]): JsonObject => ({
  id,
  type: "message",
  status,
  role: "assistant",
  content,
});

/** A tool call of a chat response: of a function, or of a custom tool, whose input is text. */
export interface ToolCall {
  readonly callId: string;
  readonly isCustom: boolean;
  readonly name: string;
  readonly input: string;
}

export const callType = (isCustom: boolean) => (isCustom ? "custom_tool_call" : "function_call");

export const callItem = (id: string, status: ItemStatus, { callId, isCustom, name, input }: ToolCall): JsonObject => ({
  id,
  type: callType(isCustom),
  status,
  call_id: callId,
  name,
  [isCustom ? "input" : "arguments"]: input,
});

export function readCall(call: JsonObject): Omit<ToolCall, "callId"> {
  const isCustom = call["type"] === "custom" || call["custom"] != null;
  const { name, input, arguments: args } = object(isCustom ? call["custom"] : call["function"]);
  return { isCustom, name: text(name), input: argumentsText(isCustom ? input : args) };
}

/** Some servers leave the arguments empty for a function without parameters. */
export const noArguments = "{}";

/** Between two parts of reasoning text. */
export const paragraphBreak = "\n\n";
