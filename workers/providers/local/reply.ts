import { setImmediate } from "node:timers/promises";
import { writeRequest } from "../http/untrusted-json.ts";
import { refusal, UpstreamFailure } from "../provider.ts";
import type { ReadMedia } from "./media.ts";
import { type ChatRequest, lastUserMessage, type Message, quote, shorten, textOf } from "./request.ts";
import { fill, type Words, wordsOf } from "./schema.ts";
import { countTokens, tokenize } from "./tokens.ts";

/** One choice, split into the pieces in which it is streamed, one token each. */
export interface Choice {
  readonly text?: readonly string[];
  readonly calls: readonly { readonly name: string; readonly pieces: readonly string[] }[];
  readonly finishReason: "stop" | "length" | "tool_calls";
}

export type Reply = Awaited<ReturnType<typeof replyTo>>;

/** An answer depends only on this much of the prompt. Usage counts all of it. */
const readCharacters = 16_384;
/** The context length in the catalog. */
const contextTokens = 131_072;
const tokensPerMessage = 3;

/** `speech` is the text that a trigger makes the model say. */
export async function replyTo(request: ChatRequest, media: ReadMedia, speech: string | undefined) {
  const prompt_tokens = await countPrompt(request, media);
  const n = request.n ?? 1;
  const most = Math.floor(maxTokens / n);
  const cap = Math.min(request.max_tokens ?? most, request.max_completion_tokens ?? most, most);
  const choices: Choice[] = [];
  let completion_tokens = 0;
  for (let index = 0; index < n; index++) {
    if (index > 0) await setImmediate();
    const prompt = textOf(lastUserMessage(request)).slice(0, readCharacters);
    const calls = speech === undefined ? toolCalls(request, prompt, wordsOf(prompt)) : [];
    const choice =
      calls.length > 0 ? calling(calls, cap) : speaking(speech ?? words(request, media, prompt, index), request, cap);
    completion_tokens += tokensOf(choice);
    choices.push(choice);
  }
  const total_tokens = prompt_tokens + completion_tokens;
  const { audioTokens: audio_tokens } = media;
  const details = audio_tokens > 0 && { prompt_tokens_details: { audio_tokens } };
  return { choices, usage: { prompt_tokens, completion_tokens, total_tokens, ...details } };
}

/** The limit for all choices together, because the answer is written in one turn of the event loop. */
const maxTokens = 200_000;

const tokensOf = ({ text = [], calls }: Choice) =>
  calls.reduce((sum, { pieces }) => sum + 1 + pieces.length, text.length);

/**
 * The functions to call: the one that `tool_choice` names; with `required` those that the prompt names, else the first; with
 * `auto` those that the prompt names, unless the last turn has a tool's result. "get_weather" and "get weather" both name
 * `get_weather`. If `parallel_tool_calls` is false, only the first is called. A single offered function need not be named
 * the first time.
 */
function toolCalls(request: ChatRequest, prompt: string, words: Words) {
  const { tools, tool_choice: choice, messages } = request;
  const functions = (tools ?? []).flatMap((tool) => ("function" in tool ? [tool.function] : []));
  if (functions.length === 0 || choice === "none") return [];
  const call = ({ name, parameters }: (typeof functions)[number]) => ({
    name,
    arguments: JSON.stringify(fill({ type: "object", ...parameters }, words, "tools")),
  });
  if (typeof choice === "object" && choice !== null) {
    const { name } = choice.function;
    const named = functions.find((each) => each.name === name);
    if (named) return [call(named)];
    throw refusal(`No function is called '${name}'.`, "tool_choice");
  }
  if (choice !== "required" && resultsOf(messages).length > 0) return [];
  const text = prompt.toLowerCase();
  const isNamed = ({ name }: { name: string }) => {
    const lower = name.toLowerCase();
    return text.includes(lower) || text.includes(lower.replaceAll("_", " "));
  };
  const named = functions.filter(isNamed);
  const isChosen = choice === "required" || (tools?.length === 1 && !hasCalled(messages));
  const called = named.length === 0 && isChosen ? functions.slice(0, 1) : named;
  return (request.parallel_tool_calls === false ? called.slice(0, 1) : called).map(call);
}

const hasCalled = (messages: readonly Message[]): boolean =>
  messages.some(({ role, tool_calls }) => role === "tool" || (tool_calls ?? []).length > 0);

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

function words(request: ChatRequest, media: ReadMedia, prompt: string, index: number): string {
  const { response_format: format, messages, seed } = request;
  if (format?.type === "json_schema")
    return JSON.stringify(fill(format.json_schema.schema, wordsOf(prompt), "response_format"));
  const keys = format?.type === "json_object" ? quotedKeys(request) : [];
  if (keys.length > 0) return JSON.stringify(Object.fromEntries(keys.map((key) => [key, key])));
  const speech = [...toolResults(messages), ...media.sentences];
  if (speech.length === 0 || prompt !== "") {
    const opening = openings[Math.abs((seed ?? 0) + index) % openings.length];
    speech.push(`${opening}: ${quote(prompt)}. This is a model for tests: it repeats what it reads.`);
  }
  const text = speech.join("\n");
  return format?.type === "json_object" ? JSON.stringify({ message: text }) : text;
}

const instructing: readonly string[] = ["system", "developer"];
const maxKeys = 100;

/**
 * The keys that the instructions quote: those of an example in JSON, else all quoted words if the instructions mention keys.
 */
function quotedKeys(request: ChatRequest): readonly string[] {
  const last = lastUserMessage(request);
  const read = request.messages.filter((message) => message === last || instructing.includes(message.role));
  const text = read.map(textOf).join("\n").slice(0, readCharacters);
  const quoted = Array.from(text.matchAll(/(["'`])([A-Za-z_][\w-]{0,63})\1(\s*:)?/g), ([, , key = "", colon]) => ({
    key,
    isExample: colon !== undefined,
  }));
  const examples = quoted.filter(({ isExample }) => isExample);
  const speaksOfKeys = /\b(keys?|fields?|property|properties|attributes?)\b/i.test(text);
  const keys = examples.length > 0 ? examples : speaksOfKeys ? quoted : [];
  return [...new Set(keys.map(({ key }) => key))].slice(0, maxKeys);
}

const lastAnswer = (messages: readonly Message[]) => messages.findLastIndex(({ role }) => role === "assistant");

/** The tool results since the model's last turn; user messages may follow them. */
const resultsOf = (messages: readonly Message[]) =>
  messages.slice(lastAnswer(messages) + 1).filter(({ role }) => role === "tool");

/** The tool results since the model's last turn, quoted. */
function toolResults(messages: readonly Message[]): string[] {
  const asked = messages[lastAnswer(messages)]?.tool_calls ?? [];
  const names = new Map<unknown, string | undefined>(asked.map((call) => [call.id, call.function?.name]));
  return resultsOf(messages).map((message) => {
    const name = names.get(message.tool_call_id) ?? "The tool";
    return `${name} returned: ${shorten(textOf(message))}`;
  });
}

/** Throws if the prompt is longer than the context. */
async function countPrompt({ messages, tools, response_format }: ChatRequest, media: ReadMedia): Promise<number> {
  const texts = [...messages.map(textOf), ...media.texts];
  if (tools?.length) texts.push(writeRequest(tools));
  if (response_format?.type === "json_schema") texts.push(writeRequest(response_format.json_schema));
  const tokens = messages.length * tokensPerMessage + media.tokens + (await countTokens(texts));
  if (tokens <= contextTokens) return tokens;
  const message = `The prompt is too long: this model's maximum context length is ${contextTokens} tokens, and the prompt has ${tokens}.`;
  throw new UpstreamFailure("refused", message, { param: "messages", code: "context_length_exceeded" });
}
