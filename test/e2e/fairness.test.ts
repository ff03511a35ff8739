import { expect, test } from "vitest";
import { ask, callCounts, path, redisOf, startProcesses, startProvider } from "../support/chaos-setup.ts";
import { testStores } from "../support/servers.ts";
import { eventually, ready, spawnApi } from "../support/service.ts";

test("a caller whose calls run through one instance waits behind others at another one", async () => {
  const stores = await testStores();
  const { provider, env } = await startProvider();
  const [{ client }, second] = await Promise.all([
    startProcesses(stores, env, { worker: { WORKER_CONCURRENCY_CHAT: "1" } }),
    spawnApi(stores, env),
  ]);
  await ready(second.client);
  const [greedy, modest] = [await client.account("1.00"), await client.account("1.00")];
  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeHeaders: gate.promise });
  const running = greedy.post(path, ask());
  await provider.request(0);

  const redis = redisOf(stores);
  const askAtSecond = async ({ key }: typeof greedy, content: string) => {
    const body = JSON.stringify(ask({ messages: [{ role: "user", content }] }));
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    return (await fetch(`${second.client.baseUrl}${path}`, { method: "POST", headers, body })).status;
  };
  const waits = (calls: number) => eventually(async () => (await callCounts(redis, "chat")).waiting === calls);
  const first = askAtSecond(greedy, "greedy");
  await waits(1);
  const later = askAtSecond(modest, "modest");
  await waits(2);
  gate.resolve();
  expect((await running).status).toBe(200);
  expect(await Promise.all([first, later])).toEqual([200, 200]);
  const contents = provider.requests.map(({ body }) => (body["messages"] as { content: string }[])[0]?.content);
  expect(contents.slice(1)).toEqual(["modest", "greedy"]);
});
