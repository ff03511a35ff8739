import { invalidValue } from "#errors";
import { isSet, isUploadId, type JsonObject, list, object, text } from "#formats";
import type { IgnoredParams } from "../ignored-params.ts";

const refuse = (param: string, what: string): never => {
  throw invalidValue(param, `${param}: ${what} of this type do not cross to this model.`);
};

const textPart = (said: string): JsonObject => ({ type: "text", text: said });

function filePart(part: JsonObject): JsonObject {
  const { file_id, file_data, file_url, filename } = part;
  const id = [file_id, file_data, file_url].find(isUploadId);
  if (id !== undefined) return { type: "file", file: { file_id: id } };
  return {
    type: "file",
    file: { filename: text(filename) || "document.pdf", file_data: text(file_data) || text(file_url) },
  };
}

/** One part as chat has it. */
function partToChat(part: JsonObject, at: string, left: IgnoredParams): JsonObject {
  left.add("prompt_cache_breakpoint", part["prompt_cache_breakpoint"]);
  switch (part["type"]) {
    case "input_text":
    case "output_text":
      return textPart(text(part["text"]));
    case "input_image": {
      const { detail, image_url, file_id } = part;
      const url = text(image_url) || text(file_id);
      return { type: "image_url", image_url: { url, ...(isSet(detail) && { detail }) } };
    }
    case "input_audio":
      return { type: "input_audio", input_audio: object(part["input_audio"]) };
    case "input_file":
      left.add("detail", part["detail"]);
      return filePart(part);
    default:
      return refuse(`${at}.type`, "parts");
  }
}

const isText = (part: JsonObject) => part["type"] === "text";

function contentToChat(content: unknown, at: string, left: IgnoredParams): string | JsonObject[] {
  if (!Array.isArray(content)) return text(content);
  const parts = list(content).map((part, p) => partToChat(part, `${at}[${p}]`, left));
  const [only] = parts;
  return parts.length === 1 && only && isText(only) ? text(only["text"]) : parts;
}

/** What the assistant said and called before anyone answered: one message of chat. */
interface Turn {
  said: string;
  refusal: string;
  readonly calls: JsonObject[];
}

function speak(turn: Turn, content: unknown): void {
  if (typeof content === "string") turn.said += content;
  for (const part of list(content)) {
    turn.said += text(part["text"]);
    turn.refusal += text(part["refusal"]);
  }
}

function turnToChat({ said, refusal, calls }: Turn): JsonObject {
  return {
    role: "assistant",
    content: said || (refusal || calls.length > 0 ? null : ""),
    ...(refusal && { refusal }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

function callToChat(item: JsonObject): JsonObject {
  const id = text(item["call_id"]);
  const name = text(item["name"]);
  return item["type"] === "function_call"
    ? { id, type: "function", function: { name, arguments: text(item["arguments"]) } }
    : { id, type: "custom", custom: { name, input: text(item["input"]) } };
}

/** Chat's tool messages are text: what is none comes in a user's message after them. */
function resultToChat(item: JsonObject, at: string, left: IgnoredParams): { result: JsonObject; media: JsonObject[] } {
  const id = text(item["call_id"]);
  const content = contentToChat(item["output"], `${at}.output`, left);
  if (typeof content === "string") return { result: { role: "tool", tool_call_id: id, content }, media: [] };
  const said = content.filter(isText).map((part) => text(part["text"]));
  const media = content.filter((part) => !isText(part));
  return {
    result: { role: "tool", tool_call_id: id, content: said.join("\n") },
    media: media.length > 0 ? [textPart(`Of the result of ${id}:`), ...media] : [],
  };
}

/** The items of a request as the messages of chat. */
export function inputToChat(input: unknown, left: IgnoredParams): JsonObject[] {
  if (!Array.isArray(input)) return [{ role: "user", content: text(input) }];
  const messages: JsonObject[] = [];
  let turn: Turn | undefined;
  let media: JsonObject[] = [];
  const endTurn = () => {
    if (turn) messages.push(turnToChat(turn));
    turn = undefined;
  };
  const endResults = () => {
    if (media.length > 0) messages.push({ role: "user", content: media });
    media = [];
  };
  const inTurn = (): Turn => {
    endResults();
    turn ??= { said: "", refusal: "", calls: [] };
    return turn;
  };

  list(input).forEach((item, i) => {
    const at = `input[${i}]`;
    switch (item["type"] ?? "message") {
      case "message":
        if (item["role"] === "assistant") {
          // Of two messages in a row each is its own; what follows calls belongs to them.
          if (turn && turn.calls.length === 0) endTurn();
          speak(inTurn(), item["content"]);
          return;
        }
        endTurn();
        endResults();
        messages.push({
          role: ["system", "developer"].includes(text(item["role"])) ? item["role"] : "user",
          content: contentToChat(item["content"], `${at}.content`, left),
        });
        return;
      case "function_call":
      case "custom_tool_call":
        inTurn().calls.push(callToChat(item));
        return;
      case "function_call_output":
      case "custom_tool_call_output": {
        endTurn();
        const { result, media: more } = resultToChat(item, at, left);
        messages.push(result);
        media.push(...more);
        return;
      }
      case "reasoning":
        // It is the provider's own state; chat has no place for it.
        left.add("reasoning.encrypted_content", item["encrypted_content"]);
        return;
      default:
        refuse(`${at}.type`, "items");
    }
  });
  endTurn();
  endResults();
  return messages;
}
