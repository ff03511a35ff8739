import { setImmediate } from "node:timers/promises";
import { refusal } from "../provider.ts";
import { writeJson } from "../wire/json.ts";
import { describeImage } from "./inputs.ts";
import { type ChatRequest, type Message, textOf } from "./request.ts";
import { fill, type Words, wordsOf } from "./schema.ts";
import { countTokens, tokenize } from "./tokens.ts";

/** One choice, in the pieces in which it is streamed: one token each. */
export interface Choice {
  readonly text?: readonly string[];
  readonly calls: readonly { readonly name: string; readonly pieces: readonly string[] }[];
  readonly finishReason: "stop" | "length" | "tool_calls";
}

export type Reply = Awaited<ReturnType<typeof replyTo>>;

/** An answer depends only on this much of the prompt. Usage counts all of it. */
const readCharacters = 16_384;
const quotedCharacters = 400;
/** At most so many tokens of a prompt are counted: the context length in the catalog. */
const contextTokens = 131_072;
const tokensPerMessage = 3;
const tokensPerImage = 256;

/** `speech`: the text that a trigger has the model say. */
export async function replyTo(request: ChatRequest, speech: string | undefined) {
  const cap = Math.min(request.max_tokens ?? maxTokens, request.max_completion_tokens ?? maxTokens);
  const choices: Choice[] = [];
  let completion_tokens = 0;
  for (let index = 0; index < (request.n ?? 1); index++) {
    if (index > 0) await setImmediate();
    const prompt = textOf(lastUserMessage(request)).slice(0, readCharacters);
    const calls = speech === undefined ? toolCalls(request, prompt, wordsOf(prompt)) : [];
    const choice =
      calls.length > 0 ? calling(calls, cap) : speaking(speech ?? words(request, prompt, index), request, cap);
    completion_tokens += tokensOf(choice);
    choices.push(choice);
  }
  const prompt_tokens = await countPrompt(request);
  const total_tokens = prompt_tokens + completion_tokens;
  return { choices, usage: { prompt_tokens, completion_tokens, total_tokens } };
}

const maxTokens = 1_000_000;
const noMessage: Message = { role: "user", content: "" };
export const lastUserMessage = ({ messages }: ChatRequest): Message =>
  messages.findLast(({ role }) => role === "user") ?? noMessage;

const tokensOf = ({ text = [], calls }: Choice) =>
  calls.reduce((sum, { pieces }) => sum + 1 + pieces.length, text.length);

/**
 * The function that `tool_choice` names; with `required` those that the prompt names, else the first; with `auto` those that
 * the prompt names, unless the last message is a tool's result. "get_weather" and "get weather" both name `get_weather`. Only
 * the first of them if `parallel_tool_calls` is false.
 */
function toolCalls(request: ChatRequest, prompt: string, words: Words) {
  const { tools, tool_choice: choice, messages } = request;
  const functions = (tools ?? []).flatMap((tool) => ("function" in tool ? [tool.function] : []));
  if (functions.length === 0 || choice === "none") return [];
  const call = ({ name, parameters }: (typeof functions)[number]) => ({
    name,
    arguments: JSON.stringify(fill(parameters ?? { type: "object" }, words)),
  });
  if (typeof choice === "object" && choice !== null) {
    const { name } = choice.function;
    const named = functions.find((each) => each.name === name);
    if (named) return [call(named)];
    throw refusal(`No function is called '${name}'.`, "tool_choice");
  }
  if (choice !== "required" && messages.at(-1)?.role === "tool") return [];
  const text = prompt.toLowerCase();
  const isNamed = ({ name }: { name: string }) => {
    const lower = name.toLowerCase();
    return text.includes(lower) || text.includes(lower.replaceAll("_", " "));
  };
  const named = functions.filter(isNamed);
  const called = named.length === 0 && choice === "required" ? functions.slice(0, 1) : named;
  return (request.parallel_tool_calls === false ? called.slice(0, 1) : called).map(call);
}

/** A function's name counts as one token. */
function calling(calls: ReturnType<typeof toolCalls>, cap: number): Choice {
  let remaining = cap;
  const cut: Choice["calls"][number][] = [];
  for (const { name, arguments: given } of calls) {
    if (remaining === 0) return { calls: cut, finishReason: "length" };
    const pieces = tokenize(given, remaining - 1);
    remaining -= 1 + pieces.length;
    cut.push({ name, pieces });
    if (pieces.join("").length < given.length) return { calls: cut, finishReason: "length" };
  }
  return { calls: cut, finishReason: "tool_calls" };
}

function speaking(speech: string, { stop }: ChatRequest, cap: number): Choice {
  const stops = (typeof stop === "string" ? [stop] : (stop ?? [])).filter((each) => each !== "");
  const ends = stops.map((each) => speech.indexOf(each)).filter((at) => at !== -1);
  const said = speech.slice(0, Math.min(speech.length, ...ends));
  const text = tokenize(said, cap);
  return { text, calls: [], finishReason: text.join("").length < said.length ? "length" : "stop" };
}

const openings = ["You said", "I read", "Your message was", "Understood"];

function words(request: ChatRequest, prompt: string, index: number): string {
  const { response_format: format, messages, seed } = request;
  if (format?.type === "json_schema") return JSON.stringify(fill(format.json_schema.schema, wordsOf(prompt)));
  const speech = [...toolResults(messages), ...images(request)];
  if (speech.length === 0 || prompt !== "") {
    const opening = openings[Math.abs((seed ?? 0) + index) % openings.length];
    speech.push(
      `${opening}: "${prompt.slice(0, quotedCharacters)}". This is a model for tests: it repeats what it reads.`,
    );
  }
  const text = speech.join("\n");
  return format?.type === "json_object" ? JSON.stringify({ message: text }) : text;
}

/** The results at the end of the conversation, quoted. */
function toolResults(messages: readonly Message[]): string[] {
  const since = messages.findLastIndex(({ role }) => role !== "tool") + 1;
  const asked = messages[since - 1]?.tool_calls ?? [];
  return messages.slice(since).map((message) => {
    const name = asked.find(({ id }) => id === message.tool_call_id)?.function?.name ?? "The tool";
    return `${name} returned: ${textOf(message).slice(0, quotedCharacters)}`;
  });
}

function images(request: ChatRequest): string[] {
  const message = lastUserMessage(request);
  if (!Array.isArray(message.content)) return [];
  const at = request.messages.indexOf(message);
  return message.content.flatMap((part, index) => {
    if (!("image_url" in part)) return [];
    const url = typeof part.image_url === "string" ? part.image_url : part.image_url.url;
    return [`I see ${describeImage(url, `messages[${at}].content[${index}].image_url`)}.`];
  });
}

async function countPrompt({ messages, tools, response_format }: ChatRequest): Promise<number> {
  const texts = messages.map(textOf);
  if (tools?.length) texts.push(writeJson(tools));
  if (response_format?.type === "json_schema") texts.push(writeJson(response_format.json_schema));
  const parts = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  const imageTokens = parts.filter((part) => "image_url" in part).length * tokensPerImage;
  const tokens = messages.length * tokensPerMessage + imageTokens + (await countTokens(texts));
  return Math.min(contextTokens, tokens);
}
