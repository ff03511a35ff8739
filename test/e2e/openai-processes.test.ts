import OpenAI from "openai";
import { zodFunction } from "openai/helpers/zod";
import { expect, onTestFinished } from "vitest";
import { z } from "zod";
import { mockChunk, mockError, mockText, startMockOpenai } from "../support/mock-openai.ts";
import { testStores } from "../support/servers.ts";
import { eventually, ready, spawnApi, spawnWorker } from "../support/service.ts";
import { sideBySide } from "../support/side-by-side.ts";

const test = sideBySide(4);

const localModel = "local/chat";
const providerModel = "openai/gpt-4.1-mini";
const operatorKey = "sk-operator-1234567890";
const saying = (content: string) => [{ role: "user" as const, content }];

/** An API process, worker processes, and a mock provider. */
async function startProcesses(workers: number, env: Record<string, string> = {}) {
  const stores = await testStores();
  const provider = await startMockOpenai();
  onTestFinished(() => provider.close());
  const providerEnv = { OPENAI_API_KEY: operatorKey, OPENAI_BASE_URL: provider.url, ...env };
  const [api, ...spawned] = await Promise.all([
    spawnApi(stores, env),
    ...Array.from({ length: workers }, () => spawnWorker(stores, providerEnv)),
  ]);
  await ready(api.client);
  return { api, workers: spawned, service: api.client, provider };
}

test("the official client against processes: JSON, stream, tools, embeddings, abort", async () => {
  const { service, provider } = await startProcesses(1);
  const customer = await service.account("5");
  const { openai } = customer;

  for (const [model, words] of [
    [localModel, 'You said: "hi there"'],
    [providerModel, mockText],
  ] as const) {
    const answer = await openai.chat.completions.create({ model, messages: saying("hi there") });
    expect(answer.choices[0]?.message.content).toContain(words);
    const runner = openai.chat.completions.stream({ model, messages: saying("hi there") });
    expect(await runner.finalContent()).toBe(answer.choices[0]?.message.content);
    expect(await runner.totalUsage()).toMatchObject({ total_tokens: answer.usage?.total_tokens });
  }

  const asked: string[] = [];
  const lookUp = zodFunction({
    name: "look_up",
    parameters: z.object({ city: z.string() }),
    function: ({ city }) => {
      asked.push(city);
      return "rain";
    },
  });
  const runner = openai.chat.completions.runTools({
    model: localModel,
    messages: saying('look up "Oslo"'),
    tools: [lookUp],
    stream: true,
  });
  expect(await runner.finalContent()).toContain("look_up returned: rain");
  expect(asked).toEqual(["Oslo"]);

  for (const model of ["local/embeddings", "openai/text-embedding-3-small"]) {
    const vectors = await openai.embeddings.create({ model, input: ["a", "b"] });
    expect(vectors.data.map(({ embedding }) => embedding.length > 0)).toEqual([true, true]);
  }

  provider.reset();
  provider.respond({
    events: [mockChunk({ role: "assistant", content: "abcd" })],
    beforeEnd: new Promise(() => {}),
    done: false,
  });
  const stream = await openai.chat.completions.create({ model: providerModel, messages: saying("x"), stream: true });
  for await (const chunk of stream) {
    expect(chunk.choices[0]?.delta.content).toBe("abcd");
    break;
  }
  const request = await provider.request(0);
  await request.closed;
  expect(request.aborted).toBe(true);
  await service.settled();
  expect((await customer.ledger("usage"))[0]).toMatchObject({ request: { status: "cancelled", estimated: true } });
});

test("one request id follows a call through both processes' logs, which hold no key and no prompt", async () => {
  const { api, workers, service, provider } = await startProcesses(1, { LOG_LEVEL: "debug" });
  const customer = await service.account("5");
  const marker = "the-words-of-a-prompt";
  const post = (body: object) => customer.post("/v1/chat/completions", { messages: saying(marker), ...body });
  provider.respond({}, mockError(400, `I will not do "${marker}".`), mockError(401, `Incorrect key ${operatorKey}`), {
    events: [mockChunk({ content: marker }), `data: {"broken ${marker}\n\n`],
  });
  const answers = [
    await post({ model: providerModel }),
    await post({ model: providerModel }),
    await post({ model: providerModel }),
    await post({ model: providerModel, stream: true }),
    await post({ model: localModel }),
    await post({ model: localModel, temperature: marker }),
    await customer.post("/v1/chat/completions", `{"${marker}`),
    await fetch(`${service.baseUrl}/v1/nothing?key=${customer.key}`),
    await post({ model: marker }),
  ];
  for (const answer of answers) await answer.text();
  expect(answers.map(({ status }) => status)).toEqual([200, 400, 502, 200, 200, 400, 400, 404, 404]);
  const id = answers[1]?.headers.get("x-request-id");
  await eventually(() => [api, ...workers].every(({ log }) => log.some(({ requestId }) => requestId === id)));
  const text = JSON.stringify([api.log, workers.map(({ log }) => log)]);
  expect(text).not.toContain(customer.key);
  expect(text).not.toContain(operatorKey);
  expect(text).not.toContain(marker);
});

test("two workers share the calls of one API; one that shuts down loses none", async () => {
  const { workers, service } = await startProcesses(2, { WORKER_CONCURRENCY_CHAT: "4" });
  const customer = await service.account("5");
  const calls = Array.from({ length: 24 }, (_, at) =>
    customer.openai.chat.completions.create({
      model: localModel,
      messages: saying(at % 2 === 0 ? "slow:200" : "hi"),
    }),
  );
  await Promise.race(calls);
  workers[0]?.kill("SIGTERM");
  const answers = await Promise.all(calls);
  expect(answers.map(({ choices }) => choices[0]?.finish_reason)).toEqual(Array.from({ length: 24 }, () => "stop"));
  expect(await workers[0]?.exited).toBe(0);
  await service.settled();
  expect(await customer.ledger("usage")).toHaveLength(24);
});

test("an API without a worker is not ready, and serves as soon as there is one", async () => {
  const stores = await testStores();
  const { client } = await spawnApi(stores);
  const customer = await client.account("5");
  const request = { model: localModel, messages: saying("hi") };
  await expect(customer.openai.chat.completions.create(request)).rejects.toMatchObject({
    status: 503,
    code: "no_capacity",
  });
  expect((await fetch(`${client.baseUrl}/readyz`)).status).toBe(503);
  await spawnWorker(stores);
  const patient = new OpenAI({ apiKey: customer.key, baseURL: `${client.baseUrl}/v1`, maxRetries: 3 });
  expect((await patient.chat.completions.create(request)).choices).toHaveLength(1);
  expect((await fetch(`${client.baseUrl}/readyz`)).status).toBe(200);
});
