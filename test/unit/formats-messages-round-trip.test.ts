import fc from "fast-check";
import { expect, test } from "vitest";
import { messagesCodec } from "../../shared/formats/index.ts";
import { messagesConverter } from "../../workers/conversion/messages/index.ts";

const words = fc.stringMatching(/^[\p{L}\d][\p{L}\d ]{0,8}[\p{L}\d]$/u);
const name = fc.stringMatching(/^[a-z_]{1,8}$/);
const image = fc
  .constantFrom("https://a.example/b.png", "data:image/png;base64,iVBORw0KGgo=")
  .map((url) => ({ type: "image_url", image_url: { url } }));
const file = fc.constant({
  type: "file",
  file: { filename: "f.pdf", file_data: "data:application/pdf;base64,JVBERi0=" },
});
const part = fc.oneof(
  words.map((text) => ({ type: "text", text })),
  image,
  file,
);
const user = fc
  .oneof(words, fc.array(part, { minLength: 2, maxLength: 3 }))
  .map((content) => ({ role: "user", content }));

/** An assistant message and the results of its tool calls. */
const answerWithResults = fc
  .record({
    content: words,
    calls: fc.array(fc.record({ name, args: fc.dictionary(name, fc.jsonValue({ maxDepth: 1 })), result: words }), {
      maxLength: 2,
    }),
    thought: fc.option(words, { nil: undefined }),
  })
  .map(({ content, calls, thought }) => [
    {
      role: "assistant",
      content,
      ...(calls.length > 0 && {
        tool_calls: calls.map((call, c) => ({
          id: `call_${c}`,
          type: "function",
          function: { name: call.name, arguments: JSON.stringify(call.args) },
        })),
      }),
      ...(thought !== undefined && {
        reasoning_details: [
          { type: "reasoning.text", text: thought, signature: "s", format: "anthropic-claude-v1", index: 0 },
        ],
      }),
    },
    ...calls.map(({ result }, c) => ({ role: "tool", tool_call_id: `call_${c}`, content: result })),
  ]);

const messages = fc
  .record({
    system: fc.option(
      words.map((content) => ({ role: "system", content })),
      { nil: undefined },
    ),
    turns: fc.array(fc.tuple(user, answerWithResults), { maxLength: 3 }),
    last: user,
  })
  .map(({ system, turns, last }) => [...(system ? [system] : []), ...turns.flat(2), last]);

const tools = fc.array(
  fc.record({ name, description: words, strict: fc.boolean() }).map(({ strict, ...tool }) => ({
    type: "function",
    function: { ...tool, parameters: { type: "object", properties: {} }, ...(strict && { strict }) },
  })),
  { minLength: 1, maxLength: 2 },
);
const schema = { type: "object", properties: { a: { type: "string" } }, additionalProperties: false };
const format = { type: "json_schema", json_schema: { name: "answer", schema, strict: true } };

const requests = fc.record(
  {
    model: fc.constant("claude-sonnet-4-6"),
    messages,
    max_tokens: fc.integer({ min: 2000, max: 9999 }),
    stream: fc.boolean(),
    stop: fc.array(words, { minLength: 1, maxLength: 2 }),
    temperature: fc.double({ min: 0, max: 1, noNaN: true }),
    tools,
    parallel_tool_calls: fc.constant(false),
    response_format: fc.constant(format),
  },
  { requiredKeys: ["model", "messages", "max_tokens"] },
);

test("a chat request converted to Messages is valid, and converts back to itself", () => {
  fc.assert(
    fc.property(
      requests,
      fc.constantFrom("required", "none", undefined),
      ({ parallel_tool_calls, ...rest }, choice) => {
        const chosen = {
          ...(choice && { tool_choice: choice }),
          ...(parallel_tool_calls === false && choice === "required" && { parallel_tool_calls }),
        };
        const request = { ...rest, ...(rest.tools && chosen) };
        const there = messagesConverter.requestFromChat(request);
        expect(messagesCodec.parse(there.request, 1000).model).toBe(request.model);
        const back = messagesConverter.requestToChat(there.request);
        expect(back.request).toEqual(request);
        expect([...there.ignored, ...back.ignored]).toEqual([]);
      },
    ),
    { numRuns: 100 },
  );
});

test("an effort converted to Messages and back is the same", () => {
  for (const reasoning_effort of ["none", "low", "medium", "high", "xhigh", "max"]) {
    const messages = [{ role: "user", content: "a" }];
    const { request } = messagesConverter.requestFromChat({ model: "claude-opus-4-8", messages, reasoning_effort });
    const there = reasoning_effort === "none" ? undefined : reasoning_effort;
    expect(messagesConverter.requestToChat(request).request["reasoning_effort"]).toBe(there);
  }
});
