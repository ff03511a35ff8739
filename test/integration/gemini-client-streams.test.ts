import type { GenerateContentResponse } from "@google/genai";
import { describe, expect, test } from "vitest";
import {
  asking,
  chargeOf,
  chatProvider,
  costOf,
  entriesOf,
  geminiService,
  google,
  local,
  messagesProvider,
  never,
  newCaller,
  responsesProvider,
  type Target,
} from "../support/gemini-client-setup.ts";
import { mockErrorEvent } from "../support/mock-anthropic.ts";
import { mockGeminiProblem } from "../support/mock-gemini.ts";
import { mockChunk } from "../support/mock-openai.ts";
import type { ProviderAnswer } from "../support/mock-provider.ts";
import { eventually } from "../support/service.ts";
import { gate } from "../support/service-setup.ts";

const served = geminiService();
const failed = { code: 502, status: "INTERNAL" };

/** How each provider says "abcd" and "efgh", and then breaks off; the tokens of the prompt that it has told by then. */
interface Begun {
  readonly target: Target;
  readonly said: readonly object[];
  readonly problem: object;
  /** What the caller is told of it. */
  readonly told: object;
  readonly input: number;
}

const geminiText = (text: string) => ({ candidates: [{ content: { role: "model", parts: [{ text }] }, index: 0 }] });
const delta = (text: string, sequence_number: number) => ({
  type: "response.output_text.delta",
  item_id: "msg_1",
  output_index: 0,
  content_index: 0,
  delta: text,
  logprobs: [],
  sequence_number,
});
const blockDelta = (text: string) => ({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } });
/** "Hello there" by the tokenizer, and what its template adds. */
const estimate = 9;

const providers: readonly Begun[] = [
  {
    target: google,
    said: [geminiText("abcd"), geminiText("efgh")],
    problem: mockGeminiProblem(503, "secret-of-operator overloaded"),
    told: failed,
    // As the provider counts it, when it is asked.
    input: 2,
  },
  {
    target: chatProvider,
    said: [mockChunk({ role: "assistant", content: "abcd" }), mockChunk({ content: "efgh" })],
    problem: { error: { message: "secret-of-operator overloaded", type: "server_error", code: 500 } },
    told: failed,
    input: estimate,
  },
  {
    target: responsesProvider,
    said: [delta("abcd", 0), delta("efgh", 1)],
    problem: { type: "error", code: "server_error", message: "secret-of-operator", param: null, sequence_number: 2 },
    told: failed,
    input: estimate,
  },
  {
    target: messagesProvider,
    said: [
      {
        type: "message_start",
        message: {
          id: "m",
          type: "message",
          role: "assistant",
          content: [],
          usage: { input_tokens: 7, output_tokens: 1 },
        },
      },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      blockDelta("abcd"),
      blockDelta("efgh"),
    ],
    problem: mockErrorEvent("overloaded_error", "secret-of-operator"),
    told: { code: 503, status: "UNAVAILABLE" },
    input: 7,
  },
];

/** Failures of the tests before must not open the breaker: a success between them closes it. */
async function callerOfHealthyProvider({ model }: Target) {
  const healthy = await newCaller(served);
  await eventually(() =>
    healthy.client.models.generateContent(asking(model)).then(
      () => true,
      () => undefined,
    ),
  );
  return newCaller(served);
}

const script = ({ mock }: Target, answer: ProviderAnswer) => mock?.(served).respond(answer);

/** What came of a stream before it broke, and how it broke. */
async function broken(stream: AsyncIterable<GenerateContentResponse>, onText: (said: string) => void = () => {}) {
  let said = "";
  try {
    for await (const { text = "" } of stream) {
      said += text;
      onText(said);
    }
  } catch (error) {
    return { said, error: error as Error & { status?: number } };
  }
  return { said, error: undefined };
}

describe.each(providers)("$target.name", ({ target, said, problem, told, input }) => {
  const { model } = target;
  const cost = () => costOf(model, { input, output: 2 });

  test.each([
    ["sends an error in the middle", told, { events: [...said, problem] }],
    ["cuts the stream", failed, { events: [...said, problem], cutAfter: said.length }],
    ["ends it without an end", failed, { events: said, done: false as const }],
  ])("a provider that %s: the client throws, what was delivered is charged", async (_, shown, answer) => {
    const { client, customer } = await callerOfHealthyProvider(target);
    const { opened, open } = gate();
    script(target, {
      ...answer,
      ...("done" in answer ? { beforeEnd: opened } : { beforeEvent: { [said.length]: opened } }),
    });
    const stream = await client.models.generateContentStream(asking(model));
    const { said: delivered, error } = await broken(stream, (text) => text === "abcdefgh" && open());
    expect(delivered).toBe("abcdefgh");
    const [, body = ""] = /^got status: \w+\. (\{.*\})$/.exec(error?.message ?? "") ?? [];
    expect([error?.name, JSON.parse(body)]).toEqual(["ApiError", { error: { ...shown, message: expect.any(String) } }]);
    expect(body).not.toContain("secret-of-operator");
    const [entry] = await entriesOf(served.service, customer);
    expect(entry?.request).toMatchObject({ status: "failed", usage: { input, output: 2 } });
    expect(await chargeOf(served.service, customer)).toBe(cost());
  });

  test("without alt=sse: a JSON array; a failure is its last element", async () => {
    const { customer } = await callerOfHealthyProvider(target);
    const ask = async () => {
      const path = `/v1beta/models/${model}:streamGenerateContent`;
      const response = await customer.post(path, { contents: [{ parts: [{ text: "Hello there" }] }] });
      expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
      expect(response.status).toBe(200);
      return (await response.json()) as GenerateContentResponse[];
    };
    const textIn = (items: readonly GenerateContentResponse[]) =>
      items.flatMap(({ candidates }) => candidates?.[0]?.content?.parts?.map(({ text = "" }) => text) ?? []).join("");
    const whole = await ask();
    expect(textIn(whole)).toBe(target.says);
    expect(whole.at(-1)).toMatchObject({ candidates: [{ finishReason: "STOP" }], usageMetadata: expect.anything() });
    script(target, { events: [...said, problem] });
    const items = await ask();
    const problemAt = { error: { ...told, message: expect.any(String) as string } };
    expect([textIn(items.slice(0, -1)), items.at(-1)]).toEqual(["abcdefgh", problemAt]);
  });

  test("a caller who leaves a stream: the provider's request is cut, what was delivered is charged", async () => {
    const { client, customer } = await callerOfHealthyProvider(target);
    const mock = target.mock?.(served);
    const asked = mock?.requests.length ?? 0;
    script(target, { events: [...said, problem], beforeEvent: { [said.length]: never } });
    const controller = new AbortController();
    const config = { abortSignal: controller.signal };
    const stream = await client.models.generateContentStream({ ...asking(model), config });
    const { error } = await broken(stream, (text) => text === "abcdefgh" && controller.abort());
    expect(error?.name).toBe("AbortError");
    const request = await mock?.request(asked);
    await request?.closed;
    expect(request?.aborted).toBe(true);
    const [entry] = await entriesOf(served.service, customer);
    expect(entry?.request).toMatchObject({ status: "cancelled", usage: { input, output: 2 } });
    expect(await chargeOf(served.service, customer)).toBe(cost());
  });

  test("a caller who disconnects before the JSON answer pays what the provider reports", async () => {
    const { client, customer } = await callerOfHealthyProvider(target);
    const mock = target.mock?.(served);
    const asked = mock?.requests.length ?? 0;
    const answering = gate();
    script(target, { beforeHeaders: answering.opened });
    const controller = new AbortController();
    const config = { abortSignal: controller.signal };
    const calling = client.models.generateContent({ ...asking(model), config });
    const request = await mock?.request(asked);
    controller.abort();
    await expect(calling).rejects.toMatchObject({ name: "AbortError" });
    answering.open();
    await request?.closed;
    expect(request?.aborted).toBe(false);
    const [entry] = await entriesOf(served.service, customer);
    expect(entry?.request).toMatchObject({ status: "succeeded", estimated: false });
    expect(await chargeOf(served.service, customer)).toBeGreaterThan(0n);
  });
});

test("local: a stream that breaks off is an error too, what was delivered is charged", async () => {
  const { client, customer } = await newCaller(served);
  const { said, error } = await broken(
    await client.models.generateContentStream(asking(local.model, "stream-error:3")),
  );
  expect(said).not.toBe("");
  expect(error).toMatchObject({ name: "ApiError", status: 502 });
  const [entry] = await entriesOf(served.service, customer);
  const { input = 0, output = 0 } = entry?.request.usage ?? {};
  expect(output).toBe(Math.ceil(said.length / 4));
  expect(await chargeOf(served.service, customer)).toBe(costOf(local.model, { input, output }));
});

test("the JSON array of the local model is what its stream says", async () => {
  const { client, customer } = await newCaller(served);
  const response = await customer.post(`/v1/models/${local.model}:streamGenerateContent`, {
    contents: [{ parts: [{ text: "Hello there" }] }],
  });
  const items = (await response.json()) as GenerateContentResponse[];
  const stream = await Array.fromAsync(await client.models.generateContentStream(asking(local.model)));
  const candidatesOf = (all: readonly GenerateContentResponse[]) => all.map(({ candidates }) => candidates);
  expect(candidatesOf(items)).toEqual(candidatesOf(stream));
  const broken = await customer.post(`/v1beta/models/${local.model}:streamGenerateContent`, {
    contents: [{ parts: [{ text: "stream-error:3" }] }],
  });
  expect(((await broken.json()) as unknown[]).at(-1)).toMatchObject({ error: failed });
});

test.each([local, google, messagesProvider])("$name: several streams at once do not mix", async ({ model }) => {
  const { client } = await newCaller(served, "100");
  const words = ["apple", "berry", "cherry", "dates"];
  const said = await Promise.all(
    words.map(async (word) => {
      const config = { maxOutputTokens: 200 };
      const chunks = await Array.fromAsync(
        await client.models.generateContentStream({ ...asking(model, word), config }),
      );
      return words.filter((each) => chunks.some(({ text = "" }) => text.includes(each)));
    }),
  );
  expect(said).toEqual(words.map((word) => [word]));
});
