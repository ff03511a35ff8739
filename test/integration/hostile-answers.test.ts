import { describe, expect, test } from "vitest";
import { asking, hostedModel, nativeModel, newCaller } from "../support/anthropic-client-setup.ts";
import { formatsService } from "../support/formats-service.ts";
import { expectUntouched } from "../support/service-setup.ts";

const running = formatsService();

const levels = 20_000;
const deep = `${"[".repeat(levels)}${"]".repeat(levels)}`;

/** The `type` of each event of a stream. */
const typesIn = (text: string) => [...text.matchAll(/^event: (.*)$/gm)].map(([, type]) => type);

describe("an answer nested too deeply to serialize is a failure of the provider and costs nothing", () => {
  const message = `{"type":"message","content":[{"type":"tool_use","id":"t","name":"a","input":{"a":${deep}}}]}`;
  const answer = `{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi","x":${deep}},"finish_reason":"stop"}]}`;
  const chunk = `data: {"choices":[{"index":0,"delta":{"content":"Hi","x":${deep}},"finish_reason":"stop"}]}\n\n`;

  test("JSON, passed through", async () => {
    const { customer } = await newCaller(running);
    running.anthropic.respond({ body: message });
    expect((await customer.post("/v1/messages", asking(nativeModel))).status).toBe(502);
    await expectUntouched(running.service, customer, "1.00");
  });

  test("JSON, chat", async () => {
    const { customer } = await newCaller(running);
    running.provider.respond({ body: answer });
    expect((await customer.post("/v1/chat/completions", asking(hostedModel))).status).toBe(502);
    await expectUntouched(running.service, customer, "1.00");
  });

  test("stream", async () => {
    const { customer } = await newCaller(running);
    running.provider.respond({ events: [chunk] });
    const response = await customer.post("/v1/chat/completions", { ...asking(hostedModel), stream: true });
    expect(response.status).toBe(502);
    await expectUntouched(running.service, customer, "1.00");
  });
});

test("events after the end of a message, in the same chunk, are not forwarded", async () => {
  const { customer } = await newCaller(running);
  const stream = ["message_start", "message_delta", "message_stop", "message_delta", "message_stop"]
    .map((type) => `event: ${type}\ndata: ${JSON.stringify({ type, usage: { output_tokens: 1 } })}\n\n`)
    .join("");
  running.anthropic.respond({ events: [stream] });
  const response = await customer.post("/v1/messages", { ...asking(nativeModel), stream: true });
  expect(typesIn(await response.text())).toEqual(["message_start", "message_delta", "message_stop"]);
});
