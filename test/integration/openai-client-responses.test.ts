import { zodTextFormat } from "openai/helpers/zod";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { mockChunk } from "../support/mock-openai.ts";
import { withRelayedModel } from "../support/native-formats.ts";
import { chatAnswer, hostedModel, nativeModel, wholeStream } from "../support/responses-events.ts";
import { localModel, providerModel, serviceOfFile } from "../support/service-setup.ts";

// The mock also serves `hostedModel`.
const running = serviceOfFile({ CATALOG_FILE: withRelayedModel() });
const hello = "Hello there";

test.each([localModel, nativeModel, providerModel, hostedModel])(
  "%s: a response is complete; a stream's events are in order, numbered from 0, and the last one has the response",
  async (model) => {
    const customer = await running.service.account("1");
    const answer = await customer.openai.responses.create({ model, input: hello });
    const { _request_id, id, created_at, output_text, ...whole } = answer;
    expect(whole).toMatchObject({
      object: "response",
      model,
      status: "completed",
      store: false,
      error: null,
      incomplete_details: null,
      previous_response_id: null,
      output: [{ type: "message", role: "assistant", status: "completed", content: [{ annotations: [] }] }],
    });
    const stream = await customer.openai.responses.create({ model, input: hello, stream: true });
    const events = await Array.fromAsync(stream);
    const { id: _, created_at: __, ...rest } = wholeStream(events);
    const bare = (value: unknown) =>
      JSON.parse(JSON.stringify(value).replaceAll(/"(id|completed_at)":[^,}]+/g, '"id":0')) as unknown;
    expect(bare(rest)).toEqual(bare(whole));
    expect([id, created_at > 1_600_000_000]).toEqual([expect.stringMatching(/^resp_/), true]);
    expect(events.map((event) => (event.type === "response.output_text.delta" ? event.delta : "")).join("")).toBe(
      output_text,
    );
    expect(JSON.stringify(events)).not.toMatch(/"store":true|mock-model/);
  },
);

test("hosted: a refusal, whole and streamed", async () => {
  const { openai } = await running.service.account("1");
  const refusal = "I cannot help with that.";
  running.provider.respond(chatAnswer({ refusal }), {
    events: [mockChunk({ role: "assistant", refusal: "I cannot " }), mockChunk({ refusal: "help with that." }, "stop")],
  });
  const request = { model: hostedModel, input: hello, text: { format: zodTextFormat(z.object({}), "nothing") } };
  const answer = await openai.responses.parse(request);
  expect(answer).toMatchObject({ output: [{ content: [{ type: "refusal", refusal }] }], output_parsed: null });
  const response = wholeStream(await Array.fromAsync(await openai.responses.create({ ...request, stream: true })));
  expect(response.output).toMatchObject([{ content: [{ type: "refusal", refusal }] }]);
});

describe("hosted: ignored hints are named in x-ignored-params", () => {
  test.each([false, true])("stream: %s", async (stream) => {
    const { openai } = await running.service.account("1");
    const hints = {
      metadata: { a: "b" },
      truncation: "auto" as const,
      service_tier: "auto" as const,
      reasoning: { effort: "low" as const, summary: "auto" as const },
      include: ["reasoning.encrypted_content" as const],
      store: true,
    };
    const identifiers = { user: "u", prompt_cache_key: "k" };
    const request = { model: hostedModel, input: "Hello", ...hints, ...identifiers, safety_identifier: "s" };
    const { response } = await openai.responses.create({ ...request, stream }).withResponse();
    const ignored = response.headers.get("x-ignored-params")?.split(", ").toSorted();
    const names = ["metadata", "reasoning.summary", "safety_identifier", "service_tier", "truncation"];
    expect(ignored).toEqual(names);
    expect(running.provider.requests[0]?.body).toEqual({
      model: hostedModel,
      messages: [{ role: "user", content: "Hello" }],
      reasoning_effort: "low",
      ...Object.fromEntries(Object.keys(identifiers).map((field) => [field, expect.any(String) as string])),
      ...(stream && { stream: true, stream_options: { include_usage: true } }),
    });
    // The response still has them.
    expect(await openai.responses.create(request)).toMatchObject({ metadata: { a: "b" }, user: "u" });
  });
});
