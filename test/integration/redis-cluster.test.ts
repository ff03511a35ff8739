import { expect, test } from "vitest";
import { loadConfig } from "../../shared/platform/config.ts";
import { connect, keysOf } from "../support/jobs-setup.ts";
import { ownRedisCluster, testStores, withRedis } from "../support/servers.ts";
import { startService } from "../support/service.ts";

const chat = (more: object = {}) => ({ model: "local/chat", messages: [{ role: "user", content: "Hello!" }], ...more });

test("every kind of call, limits, idempotency and revocation work on a cluster, in hash slots of all nodes", async () => {
  const stores = withRedis(await testStores(), (await ownRedisCluster()).env);
  expect(loadConfig({ ...stores }).REDIS_URL).toBeUndefined();
  const service = await startService(stores, { env: { CHAT_SHARDS: "8" } });
  const customers = await Promise.all(Array.from({ length: 12 }, () => service.account("5.00")));
  const answers = customers.flatMap((customer) => [
    customer.post("/v1/chat/completions", chat()),
    customer.post("/v1/chat/completions", chat({ stream: true })),
    customer.post("/v1/embeddings", { model: "local/embeddings", input: "one" }),
  ]);
  for (const answer of await Promise.all(answers)) {
    expect(answer.status).toBe(200);
    expect(await answer.text()).not.toContain('"error"');
  }

  const [customer] = customers as [(typeof customers)[0]];
  const image = { model: "local/image", prompt: "A lighthouse", size: "256x256" };
  const headers = { "idempotency-key": "once" };
  const made = [await customer.post("/v1/images/generations", image, { headers })];
  made.push(await customer.post("/v1/images/generations", image, { headers }));
  expect(made.map(({ status }) => status)).toEqual([200, 200]);
  expect(await made[1]?.text()).toBe(await made[0]?.text());

  const limited = await service.account("1.00", { limits: { requests_per_minute: 2 } });
  const statuses = async () => (await limited.post("/v1/chat/completions", chat())).status;
  expect([await statuses(), await statuses(), await statuses()]).toEqual([200, 200, 429]);

  const { data } = await service.admin<{ data: { id: string }[] }>("GET", `/accounts/${limited.id}/keys`);
  await service.admin("DELETE", `/keys/${data[0]?.id}`);
  expect((await limited.post("/v1/chat/completions", chat())).status).toBe(401);

  // The caller of a stream that has begun disconnects.
  const leaving = new AbortController();
  const long = chat({ stream: true, messages: [{ role: "user", content: "word ".repeat(2_000) }] });
  const begun = await customer.post("/v1/chat/completions", long, { signal: leaving.signal });
  expect(begun.status).toBe(200);
  leaving.abort();
  await begun.body?.cancel().catch(() => {});

  expect(await service.settled()).toMatchObject({ ok: true, open_holds: 0, undecided: 0 });
  const readiness = async () => (await fetch(`${service.baseUrl}/readyz`)).json();
  await expect.poll(readiness).toMatchObject({ status: "ready", redis: true, workers: { chat: 1 } });
  const redis = await connect(stores, "waiting");
  const queues = (await keysOf(redis, "{chat*}:*:meta")).map((key) => key.split(":")[1]);
  expect(new Set(queues)).toEqual(new Set(["chat", ...Array.from({ length: 7 }, (_, i) => `chat-${i + 1}`)]));
});

test("a key in another hash slot is refused even on one server, so that no such command passes the tests", async () => {
  const redis = await connect(await testStores({ oneServer: true }), "fail-fast");
  await expect(redis.mget("one", "two")).rejects.toThrow("CROSSSLOT");
  await expect(redis.eval("return 1", 2, "{a}:one", "{b}:two")).rejects.toThrow("CROSSSLOT");
  expect(await redis.mget("{a}:one", "{a}:two")).toEqual([null, null]);
});
