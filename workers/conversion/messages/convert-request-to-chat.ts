import { invalidValue } from "#errors";
import { isUploadId, refuse } from "#formats";
import { type JsonObject, list, object, omitNullish, text, writeJson } from "#json";
import { contentOf, filePart, imagePart, splitResult, textPart, withSystem } from "../chat/parts.ts";
import { type ConvertedRequest, type IgnoredParams, ignoredParams } from "../converter.ts";
import { chatToolCall } from "../tool-calls.ts";
import { convertToolChoiceToChat, convertToolsToChat } from "./prepare-tools.ts";
import { blocksToDetails, blocksToReasoning, effortOf } from "./reasoning.ts";

const refuseBlock = (param: string): never => refuse(param, "this model does not support blocks of this type");

/** A link, a data URL, or the id of an upload. */
function addressOf(source: JsonObject, at: string): string {
  switch (source["type"]) {
    case "url":
      return text(source["url"]);
    case "base64":
      if (isUploadId(source["data"])) return source["data"];
      return `data:${text(source["media_type"])};base64,${text(source["data"])}`;
    case "file":
      if (isUploadId(source["file_id"])) return source["file_id"];
  }
  return refuseBlock(`${at}.type`);
}

function noteCitations(block: JsonObject, ignored: IgnoredParams): void {
  if (object(block["citations"])["enabled"] === true) ignored.add("citations", true);
}

function documentParts(block: JsonObject, at: string, ignored: IgnoredParams): JsonObject[] {
  const source = object(block["source"]);
  noteCitations(block, ignored);
  const title = text(block["title"]);
  const context = text(block["context"]);
  switch (source["type"]) {
    case "text":
      return [textPart([title, context, text(source["data"])].filter(Boolean).join("\n\n"))];
    case "content": {
      const { content } = source;
      const parts =
        typeof content === "string" ? [textPart(content)] : partsOf(list(content), `${at}.source.content`, ignored);
      const head = [title, context].filter(Boolean).join("\n\n");
      return head ? [textPart(head), ...parts] : parts;
    }
  }
  const file = filePart(addressOf(source, `${at}.source`), title || undefined);
  return [...(context ? [textPart(context)] : []), file];
}

function searchResultText(block: JsonObject): string {
  const texts = list(block["content"]).map((each) => text(each["text"]));
  return [text(block["title"]), text(block["source"]), ...texts].filter(Boolean).join("\n\n");
}

function blockParts(block: JsonObject, at: string, ignored: IgnoredParams): JsonObject[] {
  switch (block["type"]) {
    case "text":
      return [textPart(text(block["text"]))];
    case "image":
      return [imagePart(addressOf(object(block["source"]), `${at}.source`))];
    case "document":
      return documentParts(block, at, ignored);
    case "tool_reference":
      return [textPart(`The tool ${text(block["tool_name"])} is available.`)];
    case "search_result":
      noteCitations(block, ignored);
      return [textPart(searchResultText(block))];
    default:
      return refuseBlock(`${at}.type`);
  }
}

const partsOf = (blocks: readonly JsonObject[], at: string, ignored: IgnoredParams): JsonObject[] =>
  blocks.flatMap((block, b) => blockParts(block, `${at}[${b}]`, ignored));

function convertToolResult(block: JsonObject, at: string, ignored: IgnoredParams) {
  const { content } = block;
  const id = text(block["tool_use_id"]);
  const parts = typeof content === "string" ? [textPart(content)] : partsOf(list(content), `${at}.content`, ignored);
  const { resultText, media } = splitResult(id, parts);
  // Chat has no field for `is_error`.
  const isError = block["is_error"] === true && !/^\W*error/i.test(resultText);
  return { result: { role: "tool", tool_call_id: id, content: isError ? `Error: ${resultText}` : resultText }, media };
}

function convertUser(blocks: readonly JsonObject[], at: string, ignored: IgnoredParams): JsonObject[] {
  const results: JsonObject[] = [];
  const parts: JsonObject[] = [];
  blocks.forEach((block, b) => {
    if (block["type"] === "tool_result") {
      const { result, media } = convertToolResult(block, `${at}[${b}]`, ignored);
      results.push(result);
      parts.push(...media);
    } else parts.push(...blockParts(block, `${at}[${b}]`, ignored));
  });
  return parts.length > 0 ? [...results, { role: "user", content: contentOf(parts) }] : results;
}

function convertAssistant(blocks: readonly JsonObject[], at: string, ignored: IgnoredParams): JsonObject[] {
  const calls: JsonObject[] = [];
  let answer = "";
  blocks.forEach((block, b) => {
    ignored.add("citations", block["citations"]);
    switch (block["type"]) {
      case "text":
        answer += text(block["text"]);
        break;
      case "tool_use":
        calls.push(
          chatToolCall(text(block["id"]), block["name"], writeJson(object(block["input"]), `${at}[${b}].input`)),
        );
        break;
      case "thinking":
      case "redacted_thinking":
        break;
      default:
        refuseBlock(`${at}[${b}].type`);
    }
  });
  const { reasoning_details = [], ...reasoning } = blocksToReasoning(blocks);
  const details = [...blocksToDetails(blocks), ...reasoning_details];
  if (!answer && calls.length === 0 && details.length === 0) return [];
  return [
    {
      role: "assistant",
      content: answer || null,
      ...reasoning,
      ...(calls.length > 0 && { tool_calls: calls }),
      ...(details.length > 0 && { reasoning_details: details }),
    },
  ];
}

function systemText(system: unknown): string {
  if (!Array.isArray(system)) return text(system);
  return list(system)
    .map((block) => text(block["text"]))
    .filter(Boolean)
    .join("\n\n");
}

function convertMessageToChat({ role, content }: JsonObject, m: number, ignored: IgnoredParams): JsonObject[] {
  const at = `messages[${m}].content`;
  switch (role) {
    case "system":
      return [{ role, content: systemText(content) }];
    case "user":
      return Array.isArray(content) ? convertUser(list(content), at, ignored) : [{ role, content: text(content) }];
    case "assistant":
      return Array.isArray(content) ? convertAssistant(list(content), at, ignored) : [{ role, content: text(content) }];
    default:
      throw invalidValue(`messages[${m}].role`, `messages[${m}].role must be user, assistant or system.`);
  }
}

function responseFormat(inConfig: unknown, outputFormat: unknown): unknown {
  const { type, schema } = object(inConfig ?? outputFormat);
  if (type === undefined) return undefined;
  if (type !== "json_schema") {
    const param = inConfig == null ? "output_format.type" : "output_config.format.type";
    throw invalidValue(param, `${param} must be json_schema.`);
  }
  return { type: "json_schema", json_schema: { name: "answer", schema: object(schema), strict: true } };
}

/** Converts a Messages request to chat. Fields that are not read are ignored. */
export function convertRequestToChat(request: JsonObject): ConvertedRequest {
  const { model, messages, system: systemBlocks, max_tokens, stream, temperature, top_p, ...others } = request;
  const { stop_sequences, tools, tool_choice, thinking, output_config, output_format, ...ignoredFields } = others;
  const ignored = ignoredParams();
  for (const [field, value] of Object.entries(ignoredFields)) ignored.add(field, value);
  const system = systemText(systemBlocks);
  const choice = object(tool_choice);
  const converted = list(messages).flatMap((message, m) => convertMessageToChat(message, m, ignored));
  const chat = omitNullish({
    model,
    messages: withSystem(system, converted),
    stream,
    max_tokens,
    temperature,
    top_p,
    stop: list(stop_sequences).length > 0 ? stop_sequences : undefined,
    tools: convertToolsToChat(list(tools), ignored),
    tool_choice: convertToolChoiceToChat(choice),
    parallel_tool_calls: choice["disable_parallel_tool_use"] === true ? false : undefined,
    reasoning_effort: effortOf(object(thinking), object(output_config)["effort"]),
    response_format: responseFormat(object(output_config)["format"], output_format),
  });
  return { request: chat, ignored: ignored.names() };
}
