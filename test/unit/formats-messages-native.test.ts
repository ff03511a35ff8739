import { expect, test } from "vitest";
import { messagesConverter } from "../../workers/conversion/messages/index.ts";

const { native } = messagesConverter;
const ours = { model: "anthropic/claude-opus-5-5", created: 1, id: "req_abc" };
const to = { model: "claude-opus-5-5", cap: 50, capField: "max_tokens" } as const;

test("a cap below the caller's lowers the thinking budget", () => {
  const request = { max_tokens: 10_000, thinking: { type: "enabled", budget_tokens: 8000, display: "omitted" } };
  const prepared = (cap: number, given = request) => native.prepare(given, { ...to, cap })["thinking"];
  expect(prepared(9000)).toEqual(request.thinking);
  expect(prepared(4000)).toEqual({ type: "enabled", budget_tokens: 3999, display: "omitted" });
  expect(prepared(1024)).toBeUndefined();
  // The provider refuses a budget above the caller's own cap.
  expect(prepared(5000, { ...request, max_tokens: 5000 })).toEqual(request.thinking);
});

test("events are unchanged except for our model id, without pings, and counted", () => {
  const stream = native.stream(ours);
  const message = { id: "msg_1", model: "claude-opus-5-5", content: [], usage: { input_tokens: 9, output_tokens: 1 } };
  expect(stream.write({ type: "message_start", message, later: 1 })).toBe(
    `event: message_start\ndata: ${JSON.stringify({
      type: "message_start",
      message: { ...message, model: ours.model },
      later: 1,
    })}\n\n`,
  );
  const events = [
    { type: "content_block_start", index: 0, content_block: { type: "tool_use", id: "a", name: "look", input: {} } },
    { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: "{}" } },
    { type: "content_block_delta", index: 1, delta: { type: "thinking_delta", thinking: "é" } },
    { type: "content_block_delta", index: 2, delta: { type: "text_delta", text: "abc" } },
    { type: "some_event_of_tomorrow", index: 2 },
  ];
  for (const event of events)
    expect(stream.write(event)).toBe(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  // No event may follow it, so it waits for the capture.
  for (const type of ["ping", "error", "two\nlines", undefined, "message_stop"])
    expect(stream.write({ type })).toBe("");
  expect(stream.outputBytes()).toBe("look{}".length + 2 + "abc".length);
  expect(stream.usage()).toBeUndefined();
  expect(stream.usage(true)).toMatchObject({ prompt_tokens: 9 });
  stream.write({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 7 } });
  for (const soFar of [false, true])
    expect(stream.usage(soFar)).toMatchObject({ prompt_tokens: 9, completion_tokens: 7 });
  expect(stream.end({ input: 1, output: 1 })).toBe('event: message_stop\ndata: {"type":"message_stop"}\n\n');
});
