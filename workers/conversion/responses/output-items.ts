import { type JsonObject, list, number, text } from "#json";
import type { ResponseIdentity } from "../converter.ts";
import { argumentsObject } from "../tool-calls.ts";
import { type CallerTool, customInput } from "./caller-tools.ts";

export type ItemStatus = "in_progress" | "completed" | "incomplete";
export type ItemType = keyof typeof idPrefixes;

const idPrefixes = {
  reasoning: "rs",
  message: "msg",
  function_call: "fc",
  custom_tool_call: "ctc",
  tool_search_call: "tsc",
} as const;

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

/** `state` carries the reasoning into the next turn. */
export const reasoningItem = (id: string, summary: readonly JsonObject[], state: string): JsonObject => ({
  id,
  type: "reasoning",
  summary,
  ...(state && { encrypted_content: state }),
});
export const messageItem = (id: string, status: ItemStatus, content: readonly JsonObject[]): JsonObject => ({
  id,
  type: "message",
  status,
  role: "assistant",
  content,
});

export interface ToolCall {
  readonly callId: string;
  readonly tool: CallerTool;
  /** The arguments as the model wrote them. */
  readonly args: string;
}

const callTypes = { function: "function_call", custom: "custom_tool_call", tool_search: "tool_search_call" } as const;

export const callType = ({ type }: CallerTool) => callTypes[type];

function callFields({ tool: { type, name, namespace }, args }: ToolCall): JsonObject {
  if (type === "tool_search") return { execution: "client", arguments: argumentsObject(args) };
  const named = { name, ...(namespace !== undefined && { namespace }) };
  return type === "custom" ? { ...named, input: customInput(args) } : { ...named, arguments: args };
}

export const callItem = (id: string, status: ItemStatus, call: ToolCall): JsonObject => ({
  id,
  type: callType(call.tool),
  status,
  call_id: call.callId,
  ...callFields(call),
});

/** Some servers leave the arguments empty for a function without parameters. */
export const noArguments = "{}";

/** Separates two parts of reasoning text. */
export const paragraphBreak = "\n\n";
