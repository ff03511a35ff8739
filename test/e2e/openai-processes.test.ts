import { expect, onTestFinished, test } from "vitest";
import { mockChunk, mockError, startMockOpenai } from "../support/mock-openai.ts";
import { testStores } from "../support/servers.ts";
import { eventually, ready, spawnApi, spawnWorker } from "../support/service.ts";

const localModel = "local/chat";
const providerModel = "openai/gpt-4.1-mini";
const operatorKey = "sk-operator-1234567890";
const saying = (content: string) => [{ role: "user" as const, content }];

test("an API serves once there is a worker; one request id follows a call through both logs, which hold no key and no prompt", async () => {
  const stores = await testStores();
  const provider = await startMockOpenai();
  onTestFinished(() => provider.close());
  const env = { LOG_LEVEL: "debug" };
  const api = await spawnApi(stores, env);
  const customer = await api.client.account("5");
  const marker = "the-words-of-a-prompt";
  const ask = () => customer.openai.chat.completions.create({ model: localModel, messages: saying(marker) });
  await expect(ask()).rejects.toMatchObject({ status: 503, code: "no_capacity" });
  expect((await fetch(`${api.client.baseUrl}/readyz`)).status).toBe(503);
  const worker = await spawnWorker(stores, { OPENAI_API_KEY: operatorKey, OPENAI_BASE_URL: provider.url, ...env });
  await ready(api.client);
  expect((await ask()).choices).toHaveLength(1);
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
    await fetch(`${api.client.baseUrl}/v1/nothing?key=${customer.key}`),
    await post({ model: marker }),
  ];
  for (const answer of answers) await answer.text();
  expect(answers.map(({ status }) => status)).toEqual([200, 400, 502, 200, 200, 400, 400, 404, 404]);
  const id = answers[1]?.headers.get("x-request-id");
  await eventually(() => [api, worker].every(({ log }) => log.some(({ requestId }) => requestId === id)));
  const text = JSON.stringify([api.log, worker.log]);
  expect(text).not.toContain(customer.key);
  expect(text).not.toContain(operatorKey);
  expect(text).not.toContain(marker);
});
