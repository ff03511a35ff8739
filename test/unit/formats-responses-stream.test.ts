import fc from "fast-check";
import { expect, test } from "vitest";
import { noCapacity, rateLimited } from "#errors";
import { chatStream, completeChat } from "../../workers/conversion/chat/complete-chat.ts";
import { ignoredParams } from "../../workers/conversion/index.ts";
import { callerTools } from "../../workers/conversion/responses/caller-tools.ts";
import { responsesConverter } from "../../workers/conversion/responses/index.ts";
import { assemble, clientAnswer, eventsOf, type Json } from "../support/formats-responses-assemble.ts";
import { runs } from "../support/property-runs.ts";

const tail = "0123456789abcdefghijklmn";
const identity = { model: "local/chat", created: 1_700_000_000, id: `chatcmpl-req_${tail}` };
const request = { model: "local/chat", input: "Hello" };
const begin = () => responsesConverter.streamFromChat(identity, request);
const chunk = (delta: Json, fields: Json = {}) => ({ choices: [{ index: 0, delta, ...fields }] });
const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
const estimate = { input: 1, output: 2 };

function writeAll(chunks: readonly Json[]) {
  const stream = begin();
  const text = chunks.map((each) => stream.write(each)).join("");
  return { text: text + stream.end(estimate), stream };
}

const types = (text: string) => eventsOf(text).map((event) => event["type"]);

test("text has every event of the format, in order", () => {
  const { text } = writeAll([
    chunk({ role: "assistant", content: "" }),
    chunk({ content: "Hel" }),
    chunk({ content: "lo" }),
    chunk({}, { finish_reason: "stop" }),
    { choices: [], usage },
  ]);
  const events = eventsOf(text);
  expect(events.map((event) => event["type"])).toEqual([
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
  ]);
  const at = { item_id: `msg_${tail}_0`, output_index: 0, content_index: 0 };
  const part = { type: "output_text", annotations: [], logprobs: [], text: "Hello" };
  const message = { id: `msg_${tail}_0`, type: "message", status: "completed", role: "assistant", content: [part] };
  expect(events[0]).toMatchObject({
    sequence_number: 0,
    response: { id: `resp_${tail}`, status: "in_progress", output: [], usage: null, model: "local/chat" },
  });
  expect(events.slice(2, -1)).toEqual([
    {
      type: "response.output_item.added",
      sequence_number: 2,
      output_index: 0,
      item: { ...message, status: "in_progress", content: [] },
    },
    { type: "response.content_part.added", sequence_number: 3, ...at, part: { ...part, text: "" } },
    { type: "response.output_text.delta", sequence_number: 4, ...at, delta: "Hel", logprobs: [] },
    { type: "response.output_text.delta", sequence_number: 5, ...at, delta: "lo", logprobs: [] },
    { type: "response.output_text.done", sequence_number: 6, ...at, text: "Hello", logprobs: [] },
    { type: "response.content_part.done", sequence_number: 7, ...at, part },
    { type: "response.output_item.done", sequence_number: 8, output_index: 0, item: message },
  ]);
  expect(events.at(-1)).toMatchObject({
    sequence_number: 9,
    response: {
      id: `resp_${tail}`,
      status: "completed",
      output: [message],
      usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 },
    },
  });
});

test("reasoning, refusals and calls have their own events, and end the item before them", () => {
  const call = (index: number, name: string, given: string) => ({
    index,
    id: `call_${index}`,
    function: { name, arguments: given },
  });
  const { text, stream } = writeAll([
    chunk({ reasoning: "Hm" }),
    chunk({ refusal: "No." }),
    chunk({ tool_calls: [call(0, "f", "{"), call(1, "g", "")] }),
    chunk({ tool_calls: [{ index: 0, function: { arguments: "}" } }] }, { finish_reason: "tool_calls" }),
  ]);
  expect(types(text).slice(2)).toEqual([
    "response.output_item.added",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.reasoning_summary_part.done",
    "response.output_item.done",
    "response.output_item.added",
    "response.content_part.added",
    "response.refusal.delta",
    "response.refusal.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.output_item.added",
    "response.function_call_arguments.delta",
    "response.output_item.added",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.output_item.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.output_item.done",
    "response.completed",
  ]);
  expect(stream.outputBytes()).toBe("HmNo.f{g}".length);
});

test("a stream that reached the cap is incomplete, and so is its last item", () => {
  const { text } = writeAll([chunk({ content: "Hel" }), chunk({}, { finish_reason: "length" })]);
  expect(eventsOf(text).at(-1)).toMatchObject({
    type: "response.incomplete",
    response: {
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      output: [{ status: "incomplete" }],
      usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
    },
  });
});

test("an empty stream is complete", async () => {
  const { text, stream } = writeAll([{ choices: [], usage }]);
  expect(types(text)).toEqual(["response.created", "response.in_progress", "response.completed"]);
  expect(stream.usage()).toEqual(usage);
  expect((await clientAnswer(text)).output_text).toBe("");
});

test("a failure ends the stream with response.failed and error, which the client throws", async () => {
  const stream = begin();
  const text = stream.write(chunk({ content: "Hel" })) + stream.fail?.(rateLimited("Slow down.", 5));
  expect(eventsOf(text).slice(-2)).toMatchObject([
    {
      type: "response.failed",
      sequence_number: 5,
      response: {
        status: "failed",
        error: { code: "rate_limit_exceeded", message: "Slow down." },
        output: [{ status: "incomplete", content: [{ text: "Hel" }] }],
      },
    },
    { type: "error", sequence_number: 6, code: "rate_limit_exceeded", message: "Slow down.", param: null },
  ]);
  await expect(clientAnswer(text)).rejects.toThrow("Slow down.");
  const early = begin().fail?.(noCapacity("None.")) ?? "";
  expect(types(early)).toEqual(["response.created", "response.in_progress", "response.failed", "error"]);
});

test("calls from incomplete chunks: no index, no id, a late name, arguments as an object", () => {
  const { text } = writeAll([
    chunk({ tool_calls: [{ function: { name: "f", arguments: '{"a"' } }] }),
    chunk({ tool_calls: [{ function: { arguments: ":1}" } }] }),
    chunk({ tool_calls: [{ function: { name: "g", arguments: { b: 2 } } }] }),
    chunk({ tool_calls: [{ index: 7, id: "call_h", function: { arguments: '{"c"' } }] }),
    chunk({ tool_calls: [{ index: 7, function: { name: "h", arguments: ":3}" } }] }),
    chunk({ tool_calls: [{ index: 8, id: "call_i", function: { arguments: "{}" } }] }),
  ]);
  const { response } = eventsOf(text).at(-1) as { response: Json };
  expect(response["output"]).toMatchObject([
    { call_id: `call_${tail}_0_0`, name: "f", arguments: '{"a":1}' },
    { call_id: `call_${tail}_0_1`, name: "g", arguments: '{"b":2}' },
    { call_id: "call_h", name: "h", arguments: '{"c":3}' },
    { call_id: "call_i", name: "", arguments: "{}" },
  ]);
});

test("text after another item is a separate item", async () => {
  const { text } = writeAll([
    chunk({ content: "A" }),
    chunk({ reasoning_content: "Hm" }),
    chunk({ content: [{ type: "text", text: "B" }] }),
  ]);
  const { response } = eventsOf(text).at(-1) as { response: Json };
  expect(response["output"]).toMatchObject([
    { id: `msg_${tail}_0`, content: [{ text: "A" }] },
    { id: `rs_${tail}_1` },
    { id: `msg_${tail}_2`, content: [{ text: "B" }] },
  ]);
  expect((await clientAnswer(text)).output_text).toBe("AB");
});

const pieces = fc.array(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 4 });
const calls = fc.array(
  fc.record({
    kind: fc.constantFrom("function", "custom", "namespaced", "tool_search"),
    id: fc.boolean(),
    name: fc.string({ minLength: 1 }),
    isWhole: fc.boolean(),
    pieces,
  }),
  { maxLength: 4 },
);
type Calls = typeof calls extends fc.Arbitrary<infer T> ? T : never;

/** The called tools, and their calls in chat's form. */
function toolsAndCalls(each: Calls) {
  const tools = each.map(({ kind, name }, c): Json => {
    if (kind === "tool_search") return { type: kind, execution: "client" };
    const tool = { type: kind === "custom" ? "custom" : "function", name: `${name}${c}` };
    return kind === "namespaced" ? { type: "namespace", name: "n", tools: [tool] } : tool;
  });
  const { given, chatName } = callerTools({ tools });
  const called = each.map(({ kind, isWhole, pieces, ...call }, c) => {
    const tool = given.find(({ path }) => path.startsWith(`tools[${c}]`)) ?? given.find(({ type }) => type === kind);
    const text = pieces.join("");
    const args = isWhole ? [`{"input":`, `${JSON.stringify(text)}}`] : pieces;
    return { ...call, name: chatName(tool as (typeof given)[number]), pieces: args };
  });
  return { tools, called };
}
const answers = fc.record({
  reasoning: fc.oneof(fc.constant<string[]>([]), pieces),
  details: fc.array(fc.record({ type: fc.constant("reasoning.encrypted"), data: fc.string({ minLength: 1 }) }), {
    maxLength: 2,
  }),
  includes: fc.boolean(),
  content: fc.oneof(fc.constant<string[]>([]), pieces),
  refusal: fc.oneof(fc.constant<string[]>([]), pieces),
  calls,
  finish: fc.constantFrom("stop", "length", "content_filter", "tool_calls"),
  /** The order of the calls' pieces. */
  turns: fc.array(fc.nat(), { maxLength: 12 }),
});

/** The interleaved deltas of the calls, which begin in order. */
function* inTurns(each: ReturnType<typeof toolsAndCalls>["called"], turns: readonly number[]) {
  const deltas = each.map(({ id, name, pieces }, index) =>
    pieces.map((piece, p) => ({
      index,
      ...(p === 0 && { type: "function", ...(id && { id: `call_${index}` }) }),
      function: { ...(p === 0 && { name }), arguments: piece },
    })),
  );
  for (const call of deltas) yield call.shift();
  for (let turn = 0; ; turn++) {
    const remaining = deltas.filter(({ length }) => length > 0);
    if (remaining.length === 0) return;
    yield remaining[(turns[turn % turns.length] ?? 0) % remaining.length]?.shift();
  }
}

/** A chat response, whole and in chunks, and the request for it. */
const both = answers.map(({ reasoning, details, includes, content, refusal, calls, finish, turns }) => {
  const { tools, called } = toolsAndCalls(calls);
  const chunks = [
    chunk({ role: "assistant", content: null }),
    ...reasoning.map((piece) => chunk({ reasoning_content: piece })),
    ...details.map((detail) => chunk({ reasoning_details: [detail] })),
    ...content.map((piece) => chunk({ content: piece }, { logprobs: { content: [{ token: piece, logprob: -1 }] } })),
    ...refusal.map((piece) => chunk({ refusal: piece })),
    ...[...inTurns(called, turns)].map((delta) => chunk({ tool_calls: [delta] })),
    chunk({}, { finish_reason: finish }),
    { choices: [], usage },
  ];
  const message = {
    reasoning_content: reasoning.join(""),
    reasoning_details: details,
    content: content.join("") || null,
    refusal: refusal.join("") || null,
    tool_calls: called.map(({ id, name, pieces }, c) => ({
      ...(id && { id: `call_${c}` }),
      type: "function",
      function: { name, arguments: pieces.join("") },
    })),
  };
  const logprobs = { content: content.map((piece) => ({ token: piece, logprob: -1 })) };
  const whole = completeChat({ choices: [{ message, logprobs, finish_reason: finish }], usage }, identity, estimate);
  const include = includes ? ["reasoning.encrypted_content"] : [];
  return { chunks, whole, request: { ...request, tools, include } };
});

function streamed(chunks: readonly Json[], request: Json): string {
  const stream = responsesConverter.streamFromChat(identity, request);
  return chunks.map((each) => stream.write(each)).join("") + stream.end(estimate);
}

test("an assembled stream is the whole response, wherever it was cut; also for the official client", async () => {
  await fc.assert(
    fc.asyncProperty(both, async ({ chunks, whole, request }) => {
      const expected = responsesConverter.responseFromChat(whole, identity, request);
      const text = streamed(chunks, request);
      expect(assemble(eventsOf(text))).toEqual(expected);
      const { output, status, usage: counted } = await clientAnswer(text);
      expect({ output, status, usage: counted }).toMatchObject({
        output: expected["output"],
        status: expected["status"],
        usage: expected["usage"],
      });
    }),
    { numRuns: 150 },
  );
});

const secret = { type: "reasoning.encrypted", data: "c2ln", format: "anthropic-claude-v1", index: 0 };
const call = { id: "call_1", type: "function", function: { name: "f", arguments: '{"a":1}' } };
const withTools = { ...request, tools: [{ type: "function", name: "f" }] };

test.each([
  { reasoning_content: "First, é🙂…", reasoning_details: [secret], content: "Then.", tool_calls: [call] },
  { reasoning_content: "Only.", content: null, tool_calls: [call] },
  { reasoning_details: [secret], content: "Then." },
])("reasoning of a converted answer comes back with the next turn, but not to OpenAI: %j", (message) => {
  const whole = responsesConverter.responseFromChat(
    completeChat({ choices: [{ message }], usage }, identity, estimate),
    identity,
    withTools,
  );
  const chunks = Object.entries(message).map(([field, value]) => chunk({ [field]: value }));
  for (const { output } of [whole, assemble(eventsOf(streamed(chunks, withTools)))]) {
    const input = [{ role: "user", content: "Hi" }, ...(output as Json[])];
    const { messages } = responsesConverter.requestToChat({ input }).request;
    expect(messages).toEqual([input[0], { role: "assistant", ...message }]);
    const ignored = ignoredParams();
    const target = { model: "gpt-5.2", cap: 9, capField: "max_tokens" } as const;
    const prepared = responsesConverter.native.prepare({ input }, target, ignored);
    expect(prepared["input"]).toEqual(input.filter((item) => (item as Json)["type"] !== "reasoning"));
    expect(ignored.names()).toEqual(["input.reasoning"]);
  }
});

type Message = Record<string, unknown>;

/** A chat message from its chunks, with tool calls as `{id, type, name, input}`. */
function assembleChat(chunks: readonly Json[]): Message {
  const message: Message = { role: "assistant", content: null, refusal: null };
  const calls: Record<string, string>[] = [];
  for (const { choices } of chunks as { choices: { delta: Json }[] }[])
    for (const [field, value] of choices.flatMap(({ delta }) => Object.entries(delta))) {
      if (typeof value === "string" && field !== "role")
        message[field] = ((message[field] ?? "") as string) + value || null;
      if (field === "reasoning_details") message[field] = [...((message[field] ?? []) as Json[]), ...(value as Json[])];
      if (field !== "tool_calls") continue;
      for (const { index, ...delta } of value as { index: number }[]) {
        const { id, type, name, input } = flatCall(delta);
        const call = (calls[index] ??= { id, type, name, input: "" });
        call["input"] += input;
      }
    }
  return { ...message, ...(calls.length > 0 && { tool_calls: calls }) };
}

function flatCall(call: Json): Record<"id" | "type" | "name" | "input", string> {
  const { id, type, function: called, custom } = call as Record<string, string | Record<string, string> | undefined>;
  const { name, arguments: args, input } = (called ?? custom) as Record<string, string>;
  return { id, type, name, input: args ?? input } as Record<"id" | "type" | "name" | "input", string>;
}

test("the provider's stream as chat is its whole response as chat", () => {
  fc.assert(
    fc.property(both, ({ chunks, whole, request }) => {
      const provider = responsesConverter.responseFromChat(whole, identity, request);
      const { choices, usage: counted } = responsesConverter.responseToChat(provider) as {
        choices: Json[];
        usage: Json;
      };
      const stream = responsesConverter.streamToChat();
      const out = eventsOf(streamed(chunks, request)).flatMap((event) => stream.write(event));
      const [choice] = choices as { message: Json; finish_reason: unknown }[];
      const calls = ((choice?.message["tool_calls"] ?? []) as Json[]).map(flatCall);
      expect(assembleChat(out)).toEqual({ ...choice?.message, ...(calls.length > 0 && { tool_calls: calls }) });
      const finishes = out.flatMap((each) =>
        (each["choices"] as Json[]).flatMap((last) => last["finish_reason"] ?? []),
      );
      expect(finishes).toEqual([choice?.finish_reason]);
      expect(stream.usage()).toEqual(counted);
      // A chat caller is billed by the same usage.
      const writer = chatStream(identity);
      for (const each of out) writer.write(each);
      expect(writer.usage()).toEqual(counted);
    }),
    { numRuns: runs(300) },
  );
});
