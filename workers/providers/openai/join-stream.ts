import { byteLength, type JsonObject, list, number, object } from "#json";
import { callDelta, callTracker } from "../../conversion/index.ts";
import { UpstreamFailure } from "../provider.ts";

/** The same limit as for a whole answer. */
const limitBytes = 64 * 1024 * 1024;

const texts = ["content", "reasoning_content", "reasoning", "refusal"] as const;

interface Named {
  name: string;
  args: string;
}

interface Choice {
  readonly texts: Partial<Record<(typeof texts)[number], string>>;
  readonly details: JsonObject[];
  readonly calls: (Named & { readonly id: unknown })[];
  readonly track: ReturnType<typeof callTracker>;
  readonly logprobs: JsonObject[];
  /** Chat's older form of a call. */
  functionCall: Named | undefined;
  finishReason: unknown;
}

const newChoice = (): Choice => ({
  texts: {},
  details: [],
  calls: [],
  track: callTracker((call) => `call_${call}`),
  logprobs: [],
  functionCall: undefined,
  finishReason: null,
});

const addTo = (named: Named, { name, args }: Named): void => {
  named.name += name;
  named.args += args;
};

/** Returns the number of bytes added. */
function add(choice: Choice, { delta, logprobs, finish_reason }: JsonObject): number {
  const given = object(delta);
  let bytes = 0;
  for (const field of texts) {
    const value = given[field];
    if (typeof value !== "string") continue;
    choice.texts[field] = (choice.texts[field] ?? "") + value;
    bytes += byteLength(value);
  }
  for (const value of list(given["tool_calls"])) {
    const { id, index, name, args } = callDelta(value);
    const { call, id: callId } = choice.track({ id, index, name });
    addTo((choice.calls[call] ??= { id: callId, name: "", args: "" }), { name, args });
    bytes += byteLength(name) + byteLength(args);
  }
  if (given["function_call"] != null) {
    const { name, args } = callDelta({ function: given["function_call"] });
    addTo((choice.functionCall ??= { name: "", args: "" }), { name, args });
    bytes += byteLength(name) + byteLength(args);
  }
  for (const [found, lists] of [
    [list(given["reasoning_details"]), choice.details],
    [list(object(logprobs)["content"]), choice.logprobs],
  ] as const) {
    if (found.length === 0) continue;
    lists.push(...found);
    bytes += byteLength(JSON.stringify(found));
  }
  if (finish_reason != null) choice.finishReason = finish_reason;
  return bytes;
}

const calledFunction = ({ name, args }: Named): JsonObject => ({ name, arguments: args });

const messageOf = ({ texts, details, calls, functionCall }: Choice): JsonObject => ({
  role: "assistant",
  content: null,
  ...texts,
  ...(details.length > 0 && { reasoning_details: details }),
  ...(functionCall && { function_call: calledFunction(functionCall) }),
  ...(calls.length > 0 && {
    tool_calls: calls.map((call) => ({ id: call.id, type: "function", function: calledFunction(call) })),
  }),
});

export async function joinStream(stream: AsyncIterable<readonly JsonObject[]>): Promise<JsonObject> {
  let last: JsonObject = {};
  let usage: unknown;
  let bytes = 0;
  const choices = new Map<number, Choice>();
  for await (const chunks of stream)
    for (const chunk of chunks) {
      const { id, created, model, system_fingerprint } = chunk;
      last = { id: id ?? last["id"], created: created ?? last["created"], model, system_fingerprint };
      usage = chunk["usage"] ?? usage;
      list(chunk["choices"]).forEach((value, position) => {
        const index = number(value["index"]) ?? position;
        const choice = choices.get(index) ?? newChoice();
        choices.set(index, choice);
        bytes += add(choice, value);
      });
      if (bytes > limitBytes) throw new UpstreamFailure("unavailable", `an answer over ${limitBytes} bytes`);
    }
  return {
    ...last,
    object: "chat.completion",
    choices: [...choices]
      .toSorted(([one], [other]) => one - other)
      .map(([index, choice]) => ({
        index,
        message: messageOf(choice),
        ...(choice.logprobs.length > 0 && { logprobs: { content: choice.logprobs } }),
        finish_reason: choice.finishReason,
      })),
    ...(usage !== undefined && { usage }),
  };
}
