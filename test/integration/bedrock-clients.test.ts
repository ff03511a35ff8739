import { expect, test } from "vitest";
import { asking, clientOf, textOf } from "../support/anthropic-client-setup.ts";
import {
  type MockBedrock,
  mockAccessKey,
  mockAwsError,
  mockFrames,
  mockSession,
  startMockBedrock,
} from "../support/mock-bedrock.ts";
import { chunkFrame, exceptionFrame } from "../support/mock-event-stream.ts";
import { movableClock } from "../support/movable-clock.ts";
import { ofFile } from "../support/of-file.ts";
import {
  catalogWith,
  entriesOf,
  type FileService,
  never,
  startWithProvider,
  untilHealthy,
} from "../support/service-setup.ts";

const claude = "anthropic/claude-haiku-4-5";
const mistral = "mistralai/mistral-large-2512";
const prices = { input: "1", cached_input: "0.5", output: "2" };

interface Served extends FileService {
  readonly bedrock: MockBedrock;
  readonly frankfurt: MockBedrock;
}

/** A service whose only credentials are those of AWS, with room for one call at a time in Frankfurt. */
const served: Served = ofFile(
  async (onEnd) => {
    const { clock, ...time } = movableClock();
    const bedrock = await startMockBedrock({ now: () => clock.now() });
    const frankfurt = await startMockBedrock({ now: () => clock.now(), region: "eu-central-1", prefix: "eu" });
    const env = {
      BEDROCK_CREDENTIALS: JSON.stringify(mockAccessKey),
      BEDROCK_BASE_URL: bedrock.url,
      BEDROCK_EU_CREDENTIALS: JSON.stringify(mockSession),
      BEDROCK_EU_BASE_URL: frankfurt.url,
      CATALOG_FILE: catalogWith(
        { "bedrock-eu": { concurrency: 1 } },
        {
          [claude]: { pricing: { ...prices, cache_write: "1.25", cache_write_1h: "2" } },
          [mistral]: { pricing: prices },
        },
      ),
    };
    const running = await startWithProvider(env, onEnd, clock);
    onEnd(() => Promise.all([running.provider.close(), bedrock.close(), frankfurt.close()]));
    return { ...running, ...time, bedrock, frankfurt };
  },
  ({ bedrock, frankfurt }) => {
    bedrock.reset();
    frankfurt.reset();
  },
);

const path = (model: string, operation: string) => `/model/${encodeURIComponent(model)}/${operation}`;
const haiku = "anthropic.claude-haiku-4-5-20251001-v1:0";
const costs = async (customer: Parameters<typeof entriesOf>[1]) =>
  (await entriesOf(served.service, customer)).map(({ amount_usd }) => amount_usd);

test("Anthropic's client: whole answers, streams and counts of Claude, at the price of the tokens", async () => {
  const customer = await served.service.account("10");
  const client = clientOf(served.service, customer);
  const usage = { input_tokens: 40, cache_read_input_tokens: 60, output_tokens: 50 };
  served.bedrock.respond({ text: "Good day", usage }, { text: "Good day", usage }, { inputTokens: 7 });
  const message = await client.messages.create(asking(claude));
  expect([textOf(message), message.model, message.usage]).toMatchObject(["Good day", claude, usage]);
  const events: string[] = [];
  const stream = client.messages.stream(asking(claude)).on("streamEvent", ({ type }) => void events.push(type));
  expect(textOf(await stream.finalMessage())).toBe("Good day");
  expect([events[0], events.at(-1)]).toEqual(["message_start", "message_stop"]);
  expect(await client.messages.countTokens(asking(claude))).toEqual({ input_tokens: 7 });
  expect(served.bedrock.requests.map((request) => request.path)).toEqual([
    path(`us.${haiku}`, "invoke"),
    path(`us.${haiku}`, "invoke-with-response-stream"),
    path(haiku, "count-tokens"),
  ]);
  // 40 tokens at 1, 60 from the cache at 0.5, 50 of output at 2 dollars a million.
  expect(await costs(customer)).toEqual(["-0.00017", "-0.00017"]);
});

test("OpenAI's client: a conversation with tools of a model at Converse, whole and streamed", async () => {
  const customer = await served.service.account("10");
  const tools = [
    {
      type: "function" as const,
      function: {
        name: "weather",
        parameters: { type: "object", properties: { at: { type: "string" } }, required: ["at"] },
      },
    },
  ];
  const question = { role: "user" as const, content: "The weather, please" };
  const { completions } = customer.openai.chat;
  const asked = await completions.create({ model: mistral, messages: [question], tools });
  const call = asked.choices[0]?.message.tool_calls?.[0];
  expect(asked.choices[0]).toMatchObject({ finish_reason: "tool_calls" });
  expect(call).toMatchObject({ type: "function", function: { name: "weather", arguments: '{"at":"mock"}' } });
  const messages = [
    question,
    { role: "assistant" as const, content: null, tool_calls: [call as never] },
    { role: "tool" as const, tool_call_id: String(call?.id), content: "Rain" },
  ];
  const stream = completions.stream({ model: mistral, messages, tools, stream_options: { include_usage: true } });
  const answer = await stream.finalChatCompletion();
  expect(answer.choices[0]?.message.content).toBe("The tool said: Rain");
  const total = await stream.totalUsage();
  expect(total.prompt_tokens).toBeGreaterThan(0);
  const streamedCall = await completions
    .stream({ model: mistral, messages: [question], tools, tool_choice: "required" })
    .finalChatCompletion();
  expect(streamedCall.choices[0]?.message.tool_calls).toMatchObject([{ function: { arguments: '{"at":"mock"}' } }]);
  const name = "mistral.mistral-large-3-675b-instruct";
  expect(served.bedrock.requests.map((request) => request.path)).toEqual([
    path(name, "converse"),
    path(name, "converse-stream"),
    path(name, "converse-stream"),
  ]);
  expect((await costs(customer)).every((cost) => Number(cost) < 0)).toBe(true);
});

test("a caller's message to Claude in chat, and a refusal of AWS in the caller's format", async () => {
  const customer = await served.service.account("10");
  const body = { model: claude, messages: [{ role: "user", content: "Hello there" }], max_tokens: 50 };
  const converted = await customer.post("/v1/chat/completions", body);
  expect(await converted.json()).toMatchObject({ choices: [{ message: { content: "You said: Hello there" } }] });
  served.bedrock.respond(mockAwsError(400, "ValidationException", "messages: something is wrong"));
  const refused = await customer.post("/v1/chat/completions", body);
  expect([refused.status, await refused.json()]).toMatchObject([
    400,
    { error: { message: "messages: something is wrong", type: "invalid_request_error" } },
  ]);
});

test("a throttled region is followed by the other, and a residence of data is kept", async () => {
  const customer = await served.service.account("10");
  const ask = (provider?: object) =>
    customer.post("/v1/messages", { ...asking(claude), ...(provider && { provider }) });
  served.bedrock.respond(mockAwsError(429, "ThrottlingException", "Too many tokens, please wait."));
  expect((await ask()).status).toBe(200);
  expect(served.bedrock.requests).toHaveLength(1);
  expect((await ask({ data_residency: "eu" })).status).toBe(200);
  expect(served.frankfurt.requests.map((request) => request.path)).toEqual(
    Array(2).fill(path(`eu.${haiku}`, "invoke")),
  );
});

test("an exception in the middle of a stream ends it with the caller's format's error; what came is charged", async () => {
  const customer = await served.service.account("10");
  const client = clientOf(served.service, customer);
  const begun = [
    { type: "message_start", message: { id: "m", content: [], usage: { input_tokens: 40, output_tokens: 1 } } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "abcdefgh" } },
  ].map(chunkFrame);
  served.frankfurt.respond(mockFrames([...begun, exceptionFrame("throttlingException", "Too many tokens")]));
  const stream = client.messages.stream({ ...asking(claude), provider: { only: ["bedrock-eu"] } } as never);
  let text = "";
  stream.on("text", (delta) => {
    text += delta;
  });
  await expect(stream.finalMessage()).rejects.toThrow(/overloaded/i);
  expect(text).toBe("abcdefgh");
  const [entry] = await entriesOf(served.service, customer);
  expect(entry?.request).toMatchObject({ status: "failed", upstream: "bedrock-eu", usage: { input: 40, output: 2 } });
});

test("a caller who leaves a stream gives up its place at the upstream", async () => {
  const asked = { ...asking(claude), stream: true, provider: { only: ["bedrock-eu"] } };
  // An earlier test may have put the upstream to rest.
  const other = await served.service.account("10");
  await untilHealthy(served, () => other.post("/v1/messages", asked));
  served.frankfurt.reset();
  const customer = await served.service.account("10");
  const start = chunkFrame({ type: "message_start", message: { usage: { input_tokens: 3 } } });
  served.frankfurt.respond(mockFrames([start, start], { beforeEvent: { 1: never } }));
  const controller = new AbortController();
  const response = await customer.post("/v1/messages", asked, { signal: controller.signal });
  expect(response.status).toBe(200);
  // The upstream has one place.
  const next = customer.post("/v1/messages", asked);
  controller.abort();
  const abandoned = await served.frankfurt.request(0);
  await abandoned.closed;
  expect(abandoned.aborted).toBe(true);
  expect(await (await next).text()).toContain("message_stop");
  const entries = await entriesOf(served.service, customer);
  expect(entries.map(({ request }) => request.status).toSorted()).toEqual(["cancelled", "succeeded"]);
});
