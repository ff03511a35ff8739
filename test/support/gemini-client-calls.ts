import { type Served, sent, type Target } from "./gemini-client-setup.ts";
import { mockChunk, mockUsage } from "./mock-openai.ts";

/** OpenAI's chat stand-in calls nothing by itself. */
export function scriptChatCalls({ provider }: Served, names: readonly string[], { stream = false } = {}): void {
  const calls = names.map((name, index) => ({
    index,
    id: `call_${index}`,
    type: "function",
    function: { name, arguments: '{"city":"Oslo"}' },
  }));
  const message = { role: "assistant", content: null, refusal: null, tool_calls: calls };
  const body = { id: "x", choices: [{ index: 0, message, finish_reason: "tool_calls" }], usage: mockUsage() };
  const delta = (index: number, more: object) => mockChunk({ tool_calls: [{ index, ...more }] });
  const events = [
    mockChunk({ role: "assistant", content: null }),
    ...calls.map(({ index, function: { name }, ...call }) =>
      delta(index, { ...call, function: { name, arguments: "" } }),
    ),
    ...calls.map(({ index }) => delta(index, { function: { arguments: '{"city":' } })),
    ...calls.map(({ index }) => delta(index, { function: { arguments: '"Oslo"}' } })),
    mockChunk({}, "tool_calls"),
    mockChunk(undefined, null, { usage: mockUsage() }),
  ];
  provider.respond(stream ? { events } : { body });
}

type Fields = Readonly<Record<string, unknown>>;
type Called = readonly [id: string, city: string];

interface Heard {
  readonly calls: readonly Called[];
  readonly results: ReadonlyMap<string, unknown>;
}

const parsed = (text: unknown): unknown => (typeof text === "string" && text.startsWith("{") ? JSON.parse(text) : text);
const cityIn = (args: string) => (JSON.parse(args) as { city: string }).city;
const all = <Item>(lists: unknown, field: string) =>
  (lists as Fields[]).flatMap((holder) => (Array.isArray(holder[field]) ? (holder[field] as Item[]) : []));

function inGemini({ contents }: Fields): Heard {
  interface Part {
    functionCall?: { id: string; args: { city: string } };
    functionResponse?: { id: string; response: { output?: string } };
  }
  const parts = all<Part>(contents, "parts");
  const results = parts.flatMap(({ functionResponse }) => functionResponse ?? []);
  return {
    calls: parts.flatMap(({ functionCall }): Called[] =>
      functionCall ? [[functionCall.id, functionCall.args.city]] : [],
    ),
    results: new Map(results.map(({ id, response }) => [id, response.output ?? response])),
  };
}

function inChat({ messages }: Fields): Heard {
  const calls = all<{ id: string; function: { arguments: string } }>(messages, "tool_calls");
  const results = (messages as { tool_call_id?: string; content: unknown }[]).flatMap(({ tool_call_id, content }) =>
    tool_call_id === undefined ? [] : [[tool_call_id, parsed(content)] as const],
  );
  return { calls: calls.map((call) => [call.id, cityIn(call.function.arguments)]), results: new Map(results) };
}

function inResponses({ input }: Fields): Heard {
  const items = input as { type: string; call_id: string; arguments: string; output: unknown }[];
  const of = (type: string) => items.filter((item) => item.type === type);
  return {
    calls: of("function_call").map((item) => [item.call_id, cityIn(item.arguments)]),
    results: new Map(of("function_call_output").map((item) => [item.call_id, parsed(item.output)])),
  };
}

function inMessages({ messages }: Fields): Heard {
  interface Block {
    type: string;
    id: string;
    input: { city: string };
    tool_use_id: string;
    content: string | { text: string }[];
  }
  const blocks = all<Block>(messages, "content");
  const said = (content: Block["content"]) => parsed(typeof content === "string" ? content : content[0]?.text);
  return {
    calls: blocks.filter(({ type }) => type === "tool_use").map(({ id, input }) => [id, input.city]),
    results: new Map(
      blocks
        .filter(({ type }) => type === "tool_result")
        .map(({ tool_use_id, content }) => [tool_use_id, said(content)]),
    ),
  };
}

const readers: Readonly<Record<string, (body: Fields) => Heard>> = {
  "Google's": inGemini,
  chat: inChat,
  responses: inResponses,
  messages: inMessages,
};

/** City of each call and its result, as the target's provider got them; nothing of one that is no provider. */
export function pairsAt(served: Served, target: Target): readonly unknown[] {
  const heard = readers[target.name]?.(sent(served, target));
  return heard ? heard.calls.map(([id, city]) => [city, heard.results.get(id)]) : [];
}
