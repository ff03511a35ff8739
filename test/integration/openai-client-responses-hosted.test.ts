import { describe, expect, test } from "vitest";
import { relayedModel, withRelayedModel } from "../support/native-formats.ts";
import { hostedModel, wholeStream } from "../support/responses-events.ts";
import { localModel, serviceOfFile } from "../support/service-setup.ts";

/** Responses asked of a provider that speaks chat alone. */
const running = serviceOfFile({ CATALOG_FILE: withRelayedModel() });
const sent = () => running.provider.requests[0]?.body;

describe("hints that the provider does not know are left out by name", () => {
  test.each([false, true])("stream: %s", async (stream) => {
    const { openai } = await running.service.account("1");
    const hints = {
      metadata: { a: "b" },
      user: "u",
      truncation: "auto" as const,
      prompt_cache_key: "k",
      safety_identifier: "s",
      service_tier: "auto" as const,
      reasoning: { effort: "low" as const, summary: "auto" as const },
      include: ["reasoning.encrypted_content" as const],
      store: true,
    };
    const request = { model: hostedModel, input: "Hello", ...hints };
    const { response } = await openai.responses.create({ ...request, stream }).withResponse();
    const ignored = response.headers.get("x-ignored-params")?.split(", ").toSorted();
    expect(ignored).toEqual(
      [
        "include",
        "metadata",
        "prompt_cache_key",
        "reasoning.summary",
        "safety_identifier",
        "service_tier",
        "truncation",
        "user",
      ].toSorted(),
    );
    expect(sent()).toEqual({
      model: hostedModel,
      messages: [{ role: "user", content: "Hello" }],
      max_tokens: 32_768,
      reasoning_effort: "low",
      ...(stream && { stream: true, stream_options: { include_usage: true } }),
    });
    // What the answer echoes is what was asked for.
    expect(await openai.responses.create(request)).toMatchObject({ metadata: { a: "b" }, user: "u" });
  });
});

test("what would change the meaning is refused by its field, and reaches nobody", async () => {
  const { openai } = await running.service.account("1");
  const custom = { type: "apply_patch" as const };
  const calling = openai.responses.create({ model: hostedModel, input: "x", tools: [custom] });
  await expect(calling).rejects.toMatchObject({ status: 400, code: "invalid_value", param: "tools[0].type" });
  expect(running.provider.requests).toEqual([]);
});

test("another provider's reasoning is left out, its words and the turn stay", async () => {
  const { openai } = await running.service.account("1");
  await openai.responses.create({
    model: hostedModel,
    input: [
      { role: "user", content: "Hello" },
      {
        type: "reasoning",
        id: "rs_1",
        summary: [{ type: "summary_text", text: "Thought." }],
        encrypted_content: "c2VhbGVk",
      },
      { role: "assistant", content: "Hi." },
      { role: "user", content: "And now?" },
    ],
  });
  expect(JSON.stringify(sent())).not.toMatch(/c2VhbGVk|rs_1/);
  expect(sent()?.["messages"]).toMatchObject([
    { role: "user", content: "Hello" },
    { role: "assistant", content: "Hi." },
    { role: "user", content: "And now?" },
  ]);
});

test("pictures cross, by link and as bytes", async () => {
  const { openai } = await running.service.account("1");
  const pixel =
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const image = (image_url: string) => ({ type: "input_image" as const, image_url, detail: "low" as const });
  const content = [
    { type: "input_text" as const, text: "What is this?" },
    image(pixel),
    image("https://example.com/cat.png"),
  ];
  const input = [{ role: "user" as const, content }];
  await openai.responses.create({ model: relayedModel, input });
  const crossed = (url: string) => ({ type: "image_url", image_url: { url, detail: "low" } });
  expect(sent()?.["messages"]).toEqual([
    {
      role: "user",
      content: [{ type: "text", text: "What is this?" }, crossed(pixel), crossed("https://example.com/cat.png")],
    },
  ]);
  const local = await openai.responses.create({ model: localModel, input });
  expect(local.output_text).toMatch(/PNG image of 1 x 1 pixels.*\n.*https:\/\/example\.com\/cat\.png/);
});

test("an answer larger than a frame arrives whole, and so does a body too large for the job", async () => {
  const { openai } = await running.service.account("1");
  // Four bytes and two UTF-16 units each: a part must not end in the middle of one.
  const text = `x${"😀".repeat(100_000)}`;
  running.provider.always({ text });
  const input = `y${"ü".repeat(50_000)}`;
  const answer = await openai.responses.create({ model: hostedModel, input });
  expect(answer.output_text === text).toBe(true);
  expect(JSON.stringify(sent()?.["messages"]) === JSON.stringify([{ role: "user", content: input }])).toBe(true);
  const events = await Array.fromAsync(await openai.responses.create({ model: hostedModel, input, stream: true }));
  const [item] = wholeStream(events).output;
  expect(item?.type === "message" && item.content[0]?.type === "output_text" && item.content[0].text === text).toBe(
    true,
  );
});
