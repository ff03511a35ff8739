import { byteLength, type JsonObject, list, number, object } from "#json";
import { callDelta, callTracker } from "../tool-calls.ts";

const textFields = ["content", "reasoning_content", "reasoning", "refusal"] as const;

interface Called {
  name: string;
  args: string;
}

interface Call extends Called {
  /** The fields that are sent once. */
  readonly head: JsonObject;
}

const newChoice = () => ({
  texts: {} as Partial<Record<(typeof textFields)[number], string>>,
  details: [] as JsonObject[],
  calls: [] as Call[],
  track: callTracker((call) => `call_${call}`),
  logprobs: undefined as unknown,
  tokens: [] as JsonObject[],
  /** Chat's older form of a call. */
  functionCall: undefined as Called | undefined,
  extraContent: undefined as unknown,
  /** Its finish reason, and whatever came with that. */
  end: { finish_reason: null } as JsonObject,
});

type Choice = ReturnType<typeof newChoice>;

function addCalled(called: Called, { name, args }: Called): number {
  called.name += name;
  called.args += args;
  return byteLength(name) + byteLength(args);
}

function addCall({ calls, track }: Choice, delta: JsonObject): number {
  const { name, args, ...key } = callDelta(delta);
  const { call, id } = track({ ...key, name });
  const { index: _, function: __, custom: ___, ...head } = delta;
  calls[call] ??= { head: { ...head, id, type: head["type"] ?? "function" }, name: "", args: "" };
  return addCalled(calls[call], { name, args });
}

function addAll(all: JsonObject[], found: readonly JsonObject[]): number {
  if (found.length === 0) return 0;
  for (const each of found) all.push(each);
  return byteLength(JSON.stringify(found));
}

function add(choice: Choice, piece: JsonObject): number {
  const { index: _, delta, logprobs, ...end } = piece;
  const given = object(delta);
  let bytes = 0;
  for (const field of textFields) {
    const value = given[field];
    if (typeof value !== "string") continue;
    choice.texts[field] = (choice.texts[field] ?? "") + value;
    bytes += byteLength(value);
  }
  for (const call of list(given["tool_calls"])) bytes += addCall(choice, call);
  if (given["function_call"] != null) {
    choice.functionCall ??= { name: "", args: "" };
    bytes += addCalled(choice.functionCall, callDelta({ function: given["function_call"] }));
  }
  bytes += addAll(choice.details, list(given["reasoning_details"]));
  if (logprobs !== undefined) choice.logprobs = logprobs ?? choice.logprobs ?? null;
  bytes += addAll(choice.tokens, list(object(logprobs)["content"]));
  choice.extraContent = given["extra_content"] ?? choice.extraContent;
  if (end["finish_reason"] != null) choice.end = end;
  return bytes;
}

const calledFunction = ({ name, args }: Called): JsonObject => ({ name, arguments: args });

const callOf = ({ head, name, args }: Call): JsonObject =>
  head["type"] === "custom"
    ? { ...head, custom: { name, input: args } }
    : { ...head, function: calledFunction({ name, args }) };

const messageOf = ({ texts, details, calls, functionCall, extraContent }: Choice): JsonObject => ({
  role: "assistant",
  content: null,
  refusal: null,
  ...texts,
  ...(details.length > 0 && { reasoning_details: details }),
  ...(functionCall && { function_call: calledFunction(functionCall) }),
  ...(calls.length > 0 && { tool_calls: calls.map(callOf) }),
  ...(extraContent != null && { extra_content: extraContent }),
});

const logprobsOf = ({ logprobs, tokens }: Choice): unknown =>
  tokens.length > 0 ? { ...object(logprobs), content: tokens } : logprobs;

/** Joins the chunks of a stream into a whole chat answer. */
export function chunkJoiner() {
  const choices = new Map<number, Choice>();
  let head: JsonObject = {};
  let usage: unknown;
  return {
    /** Returns the number of bytes that the answer grows by. */
    add(chunk: JsonObject): number {
      const { id, created, model, system_fingerprint } = chunk;
      head = { id: id ?? head["id"], created: created ?? head["created"], model, system_fingerprint };
      usage = chunk["usage"] ?? usage;
      let bytes = 0;
      list(chunk["choices"]).forEach((value, position) => {
        const index = number(value["index"]) ?? position;
        const choice = choices.get(index) ?? newChoice();
        choices.set(index, choice);
        bytes += add(choice, value);
      });
      return bytes;
    },
    answer: (): JsonObject => ({
      ...head,
      object: "chat.completion",
      choices: [...choices]
        .toSorted(([one], [other]) => one - other)
        .map(([index, choice]) => ({
          index,
          message: messageOf(choice),
          ...(choice.logprobs !== undefined && { logprobs: logprobsOf(choice) }),
          ...choice.end,
        })),
      ...(usage !== undefined && { usage }),
    }),
  };
}

/** The whole chat answer to which an answer's events convert. */
export function joinConverted(
  stream: { write(event: JsonObject): readonly JsonObject[] },
  events: readonly JsonObject[],
): JsonObject {
  const joiner = chunkJoiner();
  for (const event of events) for (const chunk of stream.write(event)) joiner.add(chunk);
  return joiner.answer();
}

/** The whole answer as one chunk. Numbering keeps calls separate even if they share an id. */
export const asChunk = (answer: JsonObject) => ({
  usage: answer["usage"],
  choices: list(answer["choices"]).map(({ message, ...choice }) => ({
    ...choice,
    delta: {
      ...object(message),
      tool_calls: list(object(message)["tool_calls"]).map((call, index) => ({ ...call, index })),
    },
  })),
});
