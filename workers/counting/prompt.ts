import { type JsonObject, list, object, text, writeJson } from "#json";
import { audioTokens, type Document, fileTokens, imageTokens, type Rules, rulesOf } from "./media.ts";

/**
 * The tokens that a chat template adds, after OpenAI's cookbook ("How to count tokens with tiktoken"): three and the role
 * for each message, one more for a name, three that begin the answer. Tool calls add as much as a message.
 */
const messageTokens = 4;
const nameTokens = 1;
const callTokens = 4;
const answerTokens = 3;

/** A text, a number of tokens, or a file to read in the thread. */
export type Piece = string | number | Document;

function* partsOf(content: unknown, rules: Rules): Generator<Piece> {
  if (typeof content === "string") yield content;
  for (const part of list(content)) {
    switch (part["type"]) {
      case "image_url":
        yield imageTokens(part["image_url"], rules);
        break;
      case "input_audio":
        yield audioTokens(object(part["input_audio"]), rules);
        break;
      case "file":
        yield fileTokens(object(part["file"]), rules);
        break;
      default:
        yield text(part["text"]) || text(part["refusal"]);
    }
  }
}

function* callOf(called: JsonObject): Generator<string | number> {
  yield callTokens;
  yield text(called["name"]);
  yield text(called["arguments"]) || text(called["input"]);
}

/**
 * The prompt of a chat request, piece by piece. Tools are counted as JSON, which most templates
 * use. Reasoning of earlier turns is not counted: providers omit it from the prompt.
 */
export function* promptOf(request: JsonObject, owner: string | undefined): Generator<Piece> {
  const rules = rulesOf(owner, text(request["model"]));
  for (const message of list(request["messages"])) {
    yield messageTokens;
    const name = text(message["name"]);
    if (name) yield nameTokens;
    yield name;
    yield* partsOf(message["content"], rules);
    yield text(message["refusal"]);
    for (const call of list(message["tool_calls"])) yield* callOf(object(call["function"] ?? call["custom"]));
    if (message["function_call"]) yield* callOf(object(message["function_call"]));
  }
  for (const tool of list(request["tools"])) yield writeJson(tool["function"] ?? tool["custom"] ?? tool, "tools");
  for (const one of list(request["functions"])) yield writeJson(one, "functions");
  const { schema } = object(object(request["response_format"])["json_schema"]);
  if (schema !== undefined) yield writeJson(schema, "response_format");
  yield answerTokens;
}
