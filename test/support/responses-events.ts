import type OpenAI from "openai";
import { expect } from "vitest";
import { assemble, type Json } from "./formats-responses-assemble.ts";
import { mockUsage } from "./mock-openai.ts";

/** Native models by the provider's own name, and a model hosted by another provider, which speaks only chat. */
export const nativeModel = "gpt-4.1-mini";
export const reasoningModel = "gpt-5.2";
export const hostedModel = "openai/gpt-oss-120b";

/** Checks a stream against docs/api/wire-details.md, "Responses stream", and returns its final response. */
export function wholeStream(events: readonly OpenAI.Responses.ResponseStreamEvent[]): OpenAI.Responses.Response {
  const response = assemble(events as unknown as readonly Json[]) as unknown as OpenAI.Responses.Response;
  const { id, model } = response;
  for (const event of events.slice(0, 2))
    expect(event).toMatchObject({ response: { id, model, status: "in_progress", output: [], usage: null } });
  for (const event of events) if (event.type === "response.output_text.delta") expect(event.logprobs).toEqual([]);
  return response;
}

/** A whole chat response of the mock. */
export const chatAnswer = (message: object, finish_reason = "stop", more: object = {}) => ({
  body: {
    id: "chatcmpl-x",
    object: "chat.completion",
    created: 1,
    model: "mock",
    choices: [{ index: 0, message: { role: "assistant", content: null, ...message }, logprobs: null, finish_reason }],
    usage: mockUsage(),
    ...more,
  },
});
