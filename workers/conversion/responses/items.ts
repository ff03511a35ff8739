import { type JsonObject, list, object, text } from "#formats";
import type { ResponseIdentity } from "../converter.ts";
import { argumentsText } from "../tool-calls.ts";

export type Status = "in_progress" | "completed" | "incomplete";

const prefixes = { reasoning: "rs", message: "msg", function_call: "fc", custom_tool_call: "ctc" } as const;

/** What is unique of a request's id. Providers look at the prefix, and take no more than 64 characters. */
const unique = ({ id }: ResponseIdentity) => id.slice(-24);
export const responseId = (ours: ResponseIdentity) => `resp_${unique(ours)}`;
export const itemId = (type: keyof typeof prefixes, ours: ResponseIdentity, outputIndex: number) =>
  `${prefixes[type]}_${unique(ours)}_${outputIndex}`;
/** The same stand-in as in a chat answer. */
export const standInCallId = (ours: ResponseIdentity, call: number) => `call_${unique(ours)}_0_${call}`;

/** Log probabilities as the format has them: chat's, with bytes that are always a list. */
export const logprobsOf = (content: unknown): readonly JsonObject[] =>
  list(content).map((each) => ({
    ...probability(each),
    top_logprobs: list(each["top_logprobs"]).map(probability),
  }));

const probability = ({ token, logprob, bytes }: JsonObject): JsonObject => ({
  token: text(token),
  logprob: typeof logprob === "number" ? logprob : 0,
  bytes: Array.isArray(bytes) ? bytes : [],
});

export const textPart = (said: string, logprobs: readonly JsonObject[]): JsonObject => ({
  type: "output_text",
  annotations: [],
  logprobs,
  text: said,
});
export const refusalPart = (refusal: string): JsonObject => ({ type: "refusal", refusal });
export const summaryPart = (said: string): JsonObject => ({ type: "summary_text", text: said });

export const reasoningItem = (id: string, summary: readonly JsonObject[]): JsonObject => ({
  id,
  type: "reasoning",
  summary,
});
export const messageItem = (id: string, status: Status, content: readonly JsonObject[]): JsonObject => ({
  id,
  type: "message",
  status,
  role: "assistant",
  content,
});

/** A tool call of a chat answer: of a function, or of a tool that takes free text. */
export interface Call {
  readonly callId: string;
  readonly isCustom: boolean;
  readonly name: string;
  /** Arguments, or free text. */
  readonly input: string;
}

export const callItem = (id: string, status: Status, { callId, isCustom, name, input }: Call): JsonObject =>
  isCustom
    ? { id, type: "custom_tool_call", status, call_id: callId, name, input }
    : { id, type: "function_call", status, call_id: callId, name, arguments: input };

export const callType = (isCustom: boolean) => (isCustom ? "custom_tool_call" : "function_call");

/** What a tool call, or a delta of one, says in chat. */
export function readCall(value: JsonObject): { isCustom: boolean; name: string; input: string } {
  const custom = object(value["custom"]);
  const isCustom = value["type"] === "custom" || value["custom"] != null;
  const holder = isCustom ? custom : object(value["function"]);
  return {
    isCustom,
    name: text(holder["name"]),
    input: argumentsText(isCustom ? holder["input"] : holder["arguments"]),
  };
}

/** A function without parameters is called with an empty object; some servers say nothing instead. */
export const noArguments = "{}";
