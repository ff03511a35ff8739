import { isUploadId, refuse } from "#formats";
import { isSet, type JsonObject, list, object, text } from "#json";
import { contentOf, filePart, splitResult, textPart } from "../chat/parts.ts";
import type { IgnoredParams } from "../converter.ts";
import { decodeReasoning } from "../reasoning-state.ts";
import { argumentsText, chatToolCall } from "../tool-calls.ts";
import { type CallerTools, callerTools, customArguments, namedTool } from "./caller-tools.ts";

function partToChat(part: JsonObject, path: string, ignored: IgnoredParams): JsonObject {
  ignored.add("prompt_cache_breakpoint", part["prompt_cache_breakpoint"]);
  const { detail, image_url, file_id, file_data, file_url, filename } = part;
  switch (part["type"]) {
    case "input_text":
    case "output_text":
      return textPart(text(part["text"]));
    case "input_image":
      return {
        type: "image_url",
        image_url: { url: text(image_url) || text(file_id), ...(isSet(detail) && { detail }) },
      };
    case "input_audio":
      return { type: "input_audio", input_audio: object(part["input_audio"]) };
    case "input_file": {
      ignored.add("detail", detail);
      const uploadId = [file_id, file_data, file_url].find(isUploadId);
      return filePart(uploadId ?? (text(file_data) || text(file_url)), text(filename) || undefined);
    }
    default:
      return refuse(`${path}.type`, "parts of this type are not supported by this model");
  }
}

const partsToChat = (content: unknown, path: string, ignored: IgnoredParams): JsonObject[] =>
  Array.isArray(content)
    ? list(content).map((part, p) => partToChat(part, `${path}[${p}]`, ignored))
    : [textPart(text(content))];

/** An assistant message and the calls after it, which form one message in chat. */
interface AssistantTurn {
  content: string;
  refusal: string;
  reasoning: string;
  hasMessage: boolean;
  readonly details: JsonObject[];
  readonly calls: JsonObject[];
}

/** Reasoning alone does not make a message. */
function turnToChat({ content, refusal, calls, reasoning, details, hasMessage }: AssistantTurn): JsonObject[] {
  if (!hasMessage && calls.length === 0) return [];
  const message = {
    role: "assistant",
    content: content || (refusal || calls.length > 0 ? null : ""),
    ...(reasoning && { reasoning_content: reasoning }),
    ...(details.length > 0 && { reasoning_details: details }),
    ...(refusal && { refusal }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  return [message];
}

function callToChat(item: JsonObject, tools: CallerTools): JsonObject {
  const { type, call_id, arguments: args, input } = item;
  const isCustom = type === "custom_tool_call";
  const tool = namedTool(item, type === "tool_search_call" ? "tool_search" : isCustom ? "custom" : "function");
  return chatToolCall(text(call_id), tools.chatName(tool), isCustom ? customArguments(input) : argumentsText(args));
}

/** The chat names of the tools that a search found; they are among the request's tools from then on. */
const foundTools = (item: JsonObject, tools: CallerTools): string =>
  JSON.stringify({ tools: callerTools({ input: [item] }).given.map((tool) => tools.chatName(tool)) });

export function inputToChat(input: unknown, tools: CallerTools, ignored: IgnoredParams): JsonObject[] {
  if (!Array.isArray(input)) return [{ role: "user", content: text(input) }];
  const messages: JsonObject[] = [];
  let turn: AssistantTurn | undefined;
  let resultMedia: JsonObject[] = [];
  const endTurn = () => {
    if (turn) messages.push(...turnToChat(turn));
    turn = undefined;
  };
  const endResults = () => {
    if (resultMedia.length > 0) messages.push({ role: "user", content: resultMedia });
    resultMedia = [];
  };
  const openTurn = (): AssistantTurn => {
    endResults();
    turn ??= { content: "", refusal: "", reasoning: "", hasMessage: false, details: [], calls: [] };
    return turn;
  };

  const addMessage = ({ role, content }: JsonObject, path: string) => {
    if (role !== "assistant") {
      endTurn();
      endResults();
      messages.push({
        role: role === "system" || role === "developer" ? role : "user",
        content: contentOf(partsToChat(content, `${path}.content`, ignored)),
      });
      return;
    }
    // Consecutive messages stay separate, but text after calls belongs to their turn.
    if (turn?.hasMessage && turn.calls.length === 0) endTurn();
    const current = openTurn();
    current.hasMessage = true;
    for (const part of typeof content === "string" ? [{ text: content, refusal: "" }] : list(content)) {
      current.content += text(part["text"]);
      current.refusal += text(part["refusal"]);
    }
  };
  const addReasoning = ({ encrypted_content }: JsonObject) => {
    const state = decodeReasoning(encrypted_content);
    if (!state) {
      // Chat has no field for the provider's own state.
      ignored.add("reasoning.encrypted_content", encrypted_content);
      return;
    }
    const current = openTurn();
    current.reasoning += state.reasoning_content ?? "";
    current.details.push(...(state.reasoning_details ?? []));
  };
  const addResult = (id: string, parts: readonly JsonObject[]) => {
    endTurn();
    const { resultText, media } = splitResult(id, parts);
    messages.push({ role: "tool", tool_call_id: id, content: resultText });
    resultMedia.push(...media);
  };

  list(input).forEach((item, i) => {
    const path = `input[${i}]`;
    switch (item["type"] ?? "message") {
      case "message":
        addMessage(item, path);
        return;
      case "function_call":
      case "custom_tool_call":
      case "tool_search_call":
        openTurn().calls.push(callToChat(item, tools));
        return;
      case "function_call_output":
      case "custom_tool_call_output":
        addResult(text(item["call_id"]), partsToChat(item["output"], `${path}.output`, ignored));
        return;
      case "tool_search_output":
        addResult(text(item["call_id"]), [textPart(foundTools(item, tools))]);
        return;
      case "additional_tools":
        return;
      case "web_search_call":
        ignored.add("input.web_search_call", true);
        return;
      case "reasoning":
        addReasoning(item);
        return;
      default:
        refuse(`${path}.type`, "items of this type are not supported by this model");
    }
  });
  endTurn();
  endResults();
  return messages;
}
