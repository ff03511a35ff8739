import { expect, test } from "vitest";
import { formatsService, type Served } from "../support/formats-service.ts";
import { dataAddress, pdf } from "../support/media-files.ts";
import { mockGeminiError } from "../support/mock-gemini.ts";
import { mockChunk } from "../support/mock-openai.ts";
import type { MockProvider, ProviderAnswer } from "../support/mock-provider.ts";
import {
  chatFace,
  type Face,
  geminiFace,
  messagesFace,
  responsesFace,
  send,
  usageOf,
} from "../support/native-formats.ts";
import { readAlong } from "../support/native-stream-events.ts";
import { geminiText, messagesEnd, messagesStart, messagesText, responsesText } from "../support/provider-events.ts";
import { eventually } from "../support/service.ts";
import { catalogWith, gate } from "../support/service-setup.ts";

const served = formatsService({ CATALOG_FILE: catalogWith({}) });

const pages = Array.from({ length: 100 }, (_, at) => `Page ${at} says the same as the others. `.repeat(40));
const document = pdf(pages, { deflated: false }).toString("base64");

/** The provider's bill: a large document, and reasoning that is not in the stream. */
const billed = { input: 150_000, output: 20_000 };
const openaiUsage = {
  prompt_tokens: billed.input,
  completion_tokens: billed.output,
  total_tokens: billed.input + billed.output,
};
const responsesUsage = {
  input_tokens: billed.input,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: billed.output,
  output_tokens_details: { reasoning_tokens: 19_000 },
  total_tokens: billed.input + billed.output,
};
interface Row {
  readonly face: Face;
  readonly model: string;
  readonly mock: (shared: Served) => MockProvider;
  readonly body: object;
  /** The first `said` events are sent before the caller disconnects. */
  readonly events: readonly object[];
  readonly said: number;
}

const rows: readonly Row[] = [
  {
    face: chatFace,
    model: "openai/gpt-5.1",
    mock: ({ provider }) => provider,
    body: {
      reasoning_effort: "high",
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "Hello" },
            { type: "file", file: { filename: "a.pdf", file_data: `data:application/pdf;base64,${document}` } },
          ],
        },
      ],
    },
    events: [
      mockChunk({ role: "assistant", content: "abcd" }),
      mockChunk({ content: "not delivered" }),
      mockChunk({}, "stop"),
      mockChunk(undefined, null, { usage: openaiUsage }),
    ],
    said: 1,
  },
  {
    face: responsesFace,
    model: "openai/gpt-5.5",
    mock: ({ provider }) => provider,
    body: {
      reasoning: { effort: "high" },
      input: [
        {
          role: "user",
          content: [
            { type: "input_text", text: "Hello" },
            { type: "input_file", filename: "a.pdf", file_data: `data:application/pdf;base64,${document}` },
          ],
        },
      ],
    },
    events: [
      responsesText("abcd", 0),
      responsesText("not delivered", 1),
      {
        type: "response.completed",
        sequence_number: 2,
        response: { id: "r", object: "response", status: "completed", output: [], usage: responsesUsage },
      },
    ],
    said: 1,
  },
  {
    face: messagesFace,
    model: "anthropic/claude-opus-5",
    mock: ({ anthropic }) => anthropic,
    body: {
      max_tokens: 32_000,
      thinking: { type: "adaptive" },
      output_config: { effort: "high" },
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "Hello" },
            { type: "document", source: { type: "base64", media_type: "application/pdf", data: document } },
          ],
        },
      ],
    },
    events: [
      ...messagesStart({ input_tokens: billed.input, output_tokens: 1 }),
      messagesText("abcd"),
      messagesText("not delivered"),
      ...messagesEnd({ output_tokens: billed.output }),
    ],
    said: 3,
  },
  {
    face: geminiFace,
    model: "google/gemini-3.6-flash",
    mock: ({ gemini }) => gemini,
    body: {
      generationConfig: { thinkingConfig: { thinkingLevel: "high" } },
      contents: [
        {
          role: "user",
          parts: [{ text: "Hello" }, { inlineData: { mimeType: "application/pdf", data: document } }],
        },
      ],
    },
    events: [
      geminiText("abcd"),
      geminiText("not delivered", {
        usageMetadata: {
          promptTokenCount: billed.input,
          candidatesTokenCount: 1_000,
          thoughtsTokenCount: billed.output - 1_000,
          totalTokenCount: billed.input + billed.output,
        },
      }),
    ],
    said: 1,
  },
];

test.each(rows.map((row) => [row.face.name, row] as const))(
  "%s, a large document at high effort: who disconnects pays what the provider bills",
  async (_, { face, model, mock, body, events, said }) => {
    const customer = await served.service.account("200");
    const rest = gate();
    mock(served).respond({ events, beforeEvent: { [said]: rest.opened } } satisfies ProviderAnswer);
    const controller = new AbortController();
    const response = await send(customer, face.stream(model, "", body), { signal: controller.signal });
    expect([response.status, response.ok ? "" : await response.text()]).toEqual([200, ""]);
    const { text, whole } = readAlong(response);
    await eventually(() => text().includes("abcd"));
    controller.abort();
    await expect(whole).rejects.toThrow("abort");
    rest.open();
    const entry = await usageOf(served.service, customer);
    expect(entry?.request).toMatchObject({ estimated: false, usage: billed, shortfall_usd: "0.00" });
  },
);

test("a document that holds more than its size allows is 400 before the provider is asked, and costs nothing", async () => {
  const customer = await served.service.account("200");
  const dense = pdf(
    Array.from({ length: 800 }, () => ""),
    { objectStreams: true },
  );
  const file = { filename: "a.pdf", file_data: dataAddress("application/pdf", dense) };
  const refused = await customer.post("/v1/chat/completions", {
    model: "openai/gpt-5.1",
    messages: [{ role: "user", content: [{ type: "file", file }] }],
  });
  expect(refused.status).toBe(400);
  expect(await refused.json()).toMatchObject({ error: { param: "messages[0].content[0]" } });
  expect(served.provider.requests).toEqual([]);
  await served.service.settled();
  expect(await customer.available()).toBe("200.00");
});

test("a document is counted by the rules of each model: it goes to none whose hold it exceeds", async () => {
  const customer = await served.service.account("200");
  const sparse = pdf(
    Array.from({ length: 100 }, () => ""),
    { objectStreams: true },
  );
  // Five pages per kilobyte: less than the hold for Gemini's small pages, and twice that for Claude's.
  const dense = Buffer.concat([sparse, Buffer.alloc(20_480 - sparse.length, " ")]);
  const file = { filename: "a.pdf", file_data: dataAddress("application/pdf", dense) };
  const ask = async (models: readonly string[]) => {
    const response = await customer.post("/v1/chat/completions", {
      models,
      max_tokens: 10,
      messages: [{ role: "user", content: [{ type: "file", file }] }],
    });
    return { status: response.status, answer: await response.json() };
  };
  const [gemini, claude] = ["google/gemini-2.5-flash", "anthropic/claude-haiku-4-5"];
  served.gemini.always(mockGeminiError(400, "no"));
  expect(await ask([gemini, claude])).toMatchObject({ status: 400, answer: { error: { message: "no" } } });
  expect(served.anthropic.requests).toEqual([]);
  served.gemini.reset();
  expect(await ask([claude, gemini])).toMatchObject({ status: 200, answer: { model: gemini } });
});
