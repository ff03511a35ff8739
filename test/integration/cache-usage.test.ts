import { expect, test } from "vitest";
import { dayMs } from "../../shared/platform/clock.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { connectMongo } from "../../shared/platform/mongo/connection.ts";
import { createCacheUsage } from "../../shared/response-cache/index.ts";
import { managedAccount } from "../support/account-caller.ts";
import { apiOfFile, openCustomer, startApiServer } from "../support/api-server.ts";
import { brokenWire } from "../support/money-proxy.ts";
import { eventually } from "../support/service.ts";

const api = apiOfFile();
const log = createLogger("test", "silent");
const dayOf = (time: number) => new Date(time).toISOString().slice(0, 10);

test("the use of the response cache is summed by day and key over all processes, for keys that manage", async () => {
  const { mongo, clock } = api;
  const { account, manager, first, second } = await openCustomer(api);
  const foreign = await openCustomer(api);
  const [one, other] = [createCacheUsage({ mongo, clock, log }), createCacheUsage({ mongo, clock, log })];
  const none = { hits: 0, coalesced: 0, misses: 0, refreshes: 0, bypasses: 0, hit_rate: null, saved_usd: "0.00" };
  const empty = { object: "cache_usage", available: true, ...none, data: [], keys: [] };
  expect(await manager.ask("GET", "/cache")).toMatchObject({ status: 200, body: empty });

  // At noon, so that no day ends by itself.
  clock.later(1.5 * dayMs - (clock.now() % dayMs));
  one.note({ account, key: first.id, outcome: "miss" });
  one.note({ account, key: second.id, outcome: "bypass" });
  await one.stop();
  clock.later(dayMs);
  other.note({ account, key: first.id, outcome: "hit", savedNanoUsd: 2_500_000n });
  other.note({ account, key: first.id, outcome: "hit", coalesced: true, savedNanoUsd: 2n ** 40n });
  other.note({ account, key: second.id, outcome: "refresh" });
  other.note({ account: foreign.account, key: foreign.first.id, outcome: "hit", savedNanoUsd: 1n });
  await other.stop();
  const again = createCacheUsage({ mongo, clock, log });
  again.note({ account, key: first.id, outcome: "hit" });
  await again.stop();

  const [yesterday, today] = [dayOf(clock.now() - dayMs), dayOf(clock.now())];
  const saved = { hits: 3, coalesced: 1, saved_usd: "1099.514127776" };
  const days = [
    { ...none, date: yesterday, misses: 1, hit_rate: 0, bypasses: 1 },
    { ...none, date: today, ...saved, refreshes: 1, hit_rate: 1 },
  ];
  const keys = [
    { ...none, key: first.id, ...saved, misses: 1, hit_rate: 0.75 },
    { ...none, key: second.id, refreshes: 1, bypasses: 1 },
  ];
  const total = { ...none, ...saved, misses: 1, refreshes: 1, bypasses: 1, hit_rate: 0.75 };
  expect((await manager.ask("GET", "/cache")).body).toEqual({ ...empty, ...total, data: days, keys });
  const { body } = await manager.ask("GET", `/cache?from=${yesterday}&to=${yesterday}`);
  expect([body["hit_rate"], body.data]).toEqual([0, days.slice(0, 1)]);

  for (const [key, method, query, status, param] of [
    [first, "GET", "", 403, undefined],
    [first, "DELETE", "", 403, undefined],
    [manager, "GET", "from=2026-02-30", 400, "from"],
    [manager, "GET", "to=2026-11-23T05:00Z", 400, "to"],
    [manager, "GET", "from=2026-11-02&to=2026-11-01", 400, "from"],
    [manager, "GET", "from=2025-11-01&to=2026-11-02", 400, "from"],
    [manager, "GET", `key=${first.id}`, 400, "key"],
    [manager, "DELETE", "key=", 400, "key"],
    [manager, "DELETE", `key=${"k".repeat(257)}`, 400, "key"],
  ] as const) {
    const answer = await key.ask(method, `/cache?${query}`);
    expect([query, answer.status, answer.body.error.param ?? undefined]).toEqual([query, status, param]);
  }
});

test("entries are deleted for keys that manage, with a record that does not have the custom key", async () => {
  const { account, manager } = await openCustomer(api);
  for (const query of ["", `?key=${"k".repeat(256)}`]) {
    const { status, body } = await manager.ask("DELETE", `/cache${query}`);
    expect([status, body]).toEqual([200, { object: "cache", deleted: true }]);
  }
  const record = { who: manager.id, action: "DELETE /v1/cache", targets: [account], status: 200 };
  const action = encodeURIComponent(record.action);
  expect((await api.ask("GET", `/audit?target=${account}&action=${action}`)).body.data).toMatchObject([
    { ...record, changes: { all: false } },
    { ...record, changes: { all: true } },
  ]);
});

test.each([
  ["is none", "", 200, false],
  ["cannot be reached", "redis://127.0.0.1:1", 503, true],
] as const)("where the cache %s, its use is shown; deleting is a success only if there is none", async (...row) => {
  const [, CACHE_REDIS_URL, status, available] = row;
  const { ask } = await managedAccount(await startApiServer({ env: { CACHE_REDIS_URL } }));
  expect(await ask("GET", "/cache")).toMatchObject({ status: 200, body: { available, hits: 0 } });
  expect(await ask("DELETE", "/cache")).toMatchObject({ status });
});

test("while MongoDB is unavailable counts are kept for the next write, of at most 10,000 rows", async () => {
  const { clock, stores, mongo } = api;
  let isDown = true;
  let writes = 0;
  const uri = await brokenWire(stores.MONGODB_URI, ({ update }) => {
    if (update !== "cacheUsage") return "pass";
    writes += 1;
    return isDown ? "lose the request" : "pass";
  });
  const broken = await connectMongo(uri, clock, log);
  const usage = createCacheUsage({ mongo: broken, clock, log });
  const note = (n: number) => usage.note({ account: `broken_${n}`, key: "key_1", outcome: "hit" });
  note(0);
  await eventually(() => writes > 0);
  for (let n = 0; n <= 10_000; n++) note(n);
  isDown = false;
  const rows = mongo.connection.collection("cacheUsage");
  const stored = async (n: number) => (await rows.findOne({ account: `broken_${n}` }))?.["hits"] as unknown;
  await eventually(async () => (await rows.countDocuments({ account: /^broken_/ })) === 10_000);
  expect([await stored(0), await stored(9_999), await stored(10_000)]).toEqual([2, 1, undefined]);
  await usage.stop();
  await broken.close();
});
