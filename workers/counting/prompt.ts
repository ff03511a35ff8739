import { invalidValue } from "#errors";
import { type Loose, list, object, text } from "./loose.ts";
import { audioTokens, fileTokens, imageTokens } from "./media.ts";

/**
 * What a chat template writes around what is said, as OpenAI's cookbook ("How to count tokens with tiktoken") has it: three
 * tokens and the role for each message, one more for a name, three that begin the answer. Calls have the like of a message.
 */
const messageTokens = 4;
const nameTokens = 1;
const callTokens = 4;
const answerTokens = 3;

function write(value: unknown, field: string): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch (error) {
    // What JSON.parse takes at any depth, JSON.stringify does not.
    if (error instanceof RangeError) throw invalidValue(field, `${field} is nested too deep.`);
    throw error;
  }
}

function* partsOf(content: unknown): Generator<string | number> {
  if (typeof content === "string") yield content;
  for (const each of list(content)) {
    const part = object(each);
    switch (part["type"]) {
      case "image_url":
        yield imageTokens(part["image_url"]);
        break;
      case "input_audio":
        yield audioTokens(object(part["input_audio"]));
        break;
      case "file":
        yield fileTokens(object(part["file"]));
        break;
      default:
        yield text(part["text"]) || text(part["refusal"]);
    }
  }
}

function* callOf(called: Loose): Generator<string | number> {
  yield callTokens;
  yield text(called["name"]);
  yield text(called["arguments"]) || text(called["input"]);
}

function* messageOf(message: Loose): Generator<string | number> {
  yield messageTokens;
  const name = text(message["name"]);
  if (name) yield nameTokens;
  yield name;
  yield* partsOf(message["content"]);
  yield text(message["refusal"]);
  for (const each of list(message["tool_calls"])) {
    const call = object(each);
    yield* callOf(object(call["function"] ?? call["custom"]));
  }
  if (message["function_call"]) yield* callOf(object(message["function_call"]));
}

/**
 * The prompt of a chat request, piece by piece: a text, or so many tokens. Tools are counted as the JSON that most templates
 * write them as. Reasoning of earlier turns is not counted: makers leave it out of the prompt.
 */
export function* promptOf(request: Loose): Generator<string | number> {
  for (const message of list(request["messages"])) yield* messageOf(object(message));
  for (const each of list(request["tools"])) {
    const tool = object(each);
    yield write(tool["function"] ?? tool["custom"] ?? tool, "tools");
  }
  for (const one of list(request["functions"])) yield write(one, "functions");
  const format = object(request["response_format"]);
  if (format["json_schema"]) yield write(object(format["json_schema"])["schema"], "response_format");
  yield answerTokens;
}
