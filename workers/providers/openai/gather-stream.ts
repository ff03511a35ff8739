import { callDelta, callTracker } from "../../conversion/index.ts";
import { type JsonObject, UpstreamFailure } from "../provider.ts";

/** As of a whole answer. */
const limitCharacters = 64 * 1024 * 1024;

const texts = ["content", "reasoning_content", "reasoning", "refusal"] as const;

interface Call {
  readonly id: unknown;
  name: string;
  args: string;
}

interface Choice {
  readonly texts: Partial<Record<(typeof texts)[number], string>>;
  readonly details: unknown[];
  readonly calls: Call[];
  readonly track: ReturnType<typeof callTracker>;
  readonly logprobs: unknown[];
  finishReason: unknown;
}

const newChoice = (): Choice => ({
  texts: {},
  details: [],
  calls: [],
  track: callTracker((call) => `call_${call}`),
  logprobs: [],
  finishReason: null,
});

const objects = (value: unknown) => (Array.isArray(value) ? (value as readonly JsonObject[]) : []);
const inside = (holder: JsonObject | undefined, field: string) => (holder?.[field] ?? {}) as JsonObject;

function add(choice: Choice, { delta, logprobs, finish_reason }: JsonObject): number {
  let characters = 0;
  const given = (delta ?? {}) as JsonObject;
  for (const field of texts) {
    const value = given[field];
    if (typeof value !== "string") continue;
    choice.texts[field] = (choice.texts[field] ?? "") + value;
    characters += value.length;
  }
  for (const value of objects(given["tool_calls"])) {
    const { id, index, name, args } = callDelta(value);
    const { call, ...tracked } = choice.track({ id, index, name });
    const known = (choice.calls[call] ??= { id: tracked.id, name: "", args: "" });
    known.name += name;
    known.args += args;
    characters += name.length + args.length;
  }
  const details = objects(given["reasoning_details"]);
  choice.details.push(...details);
  choice.logprobs.push(...objects(inside({ logprobs }, "logprobs")["content"]));
  if (finish_reason != null) choice.finishReason = finish_reason;
  return characters + details.length;
}

const messageOf = ({ texts, details, calls }: Choice): JsonObject => ({
  role: "assistant",
  content: null,
  ...texts,
  ...(details.length > 0 && { reasoning_details: details }),
  ...(calls.length > 0 && {
    tool_calls: calls.map(({ id, name, args }) => ({ id, type: "function", function: { name, arguments: args } })),
  }),
});

/** The whole answer that the chunks of a stream make up. */
export async function gatherStream(stream: AsyncIterable<readonly JsonObject[]>): Promise<JsonObject> {
  let last: JsonObject = {};
  let usage: unknown;
  let characters = 0;
  const choices = new Map<number, Choice>();
  for await (const chunks of stream)
    for (const chunk of chunks) {
      const { id, created, model, system_fingerprint } = chunk;
      last = { id: id ?? last["id"], created: created ?? last["created"], model, system_fingerprint };
      usage = chunk["usage"] ?? usage;
      objects(chunk["choices"]).forEach((value, position) => {
        const index = typeof value["index"] === "number" ? value["index"] : position;
        const choice = choices.get(index) ?? newChoice();
        choices.set(index, choice);
        characters += add(choice, value);
      });
      if (characters > limitCharacters)
        throw new UpstreamFailure("unavailable", `an answer over ${limitCharacters} characters`);
    }
  return {
    ...last,
    object: "chat.completion",
    choices: [...choices].map(([index, choice]) => ({
      index,
      message: messageOf(choice),
      ...(choice.logprobs.length > 0 && { logprobs: { content: choice.logprobs } }),
      finish_reason: choice.finishReason,
    })),
    ...(usage !== undefined && { usage }),
  };
}
