import { expect, test } from "vitest";
import type { Limits } from "../../shared/key-records/index.ts";
import { newRequestId } from "../../shared/platform/ids.ts";
import { createProviderKeys } from "../../shared/provider-keys/index.ts";
import {
  defaults,
  instancesOfFile,
  isConnected,
  issueKey,
  refusedBy,
  startInstance,
  take,
} from "../support/keys-instance.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { testStores } from "../support/servers.ts";
import { openFaultyWire } from "../support/wire.ts";

const shared = instancesOfFile();
const unknown = `live_${"A".repeat(40)}`;
const call = (tokens = 1) => ({ requestId: newRequestId(), tokens, ttlMs: 60_000 });

test("a key is shown once, stored as a hash, and identifies its caller", async () => {
  const { a } = shared;
  const { account, key, secret } = await issueKey(a, { tokensPerMinute: 5 });
  expect(secret).toMatch(/^live_[0-9A-Za-z]{40}$/);
  expect(key.prefix).toBe(`${secret.slice(0, 8)}...`);
  expect(await a.keys.authenticate(secret)).toMatchObject({
    keyId: key.id,
    account: account.id,
    tier: "standard",
    buybackToken: null,
    limits: { ...defaults, tokensPerMinute: 5 },
  });
  const stored = await a.mongo.connection.collection("keys").find({ account: account.id }).toArray();
  expect(stored).toHaveLength(1);
  expect(JSON.stringify(stored)).not.toContain(secret.slice(8));
});

test("a missing, malformed or unknown key is refused", async () => {
  const { keys } = shared.a;
  for (const secret of [undefined, "", "live_", "sk-123", `${unknown}A`, unknown])
    await expect(keys.authenticate(secret)).rejects.toMatchObject({ code: "invalid_api_key" });
});

test("however many invented keys arrive at once, MongoDB has few reads of them", async () => {
  const { keys, mongo } = await startInstance(await testStores());
  const reads: string[] = [];
  mongo.connection.set("debug", (collection: string, method: string) => void reads.push(`${collection} ${method}`));
  const invented = Array.from({ length: 500 }, (_, n) => `live_${String(n).padStart(40, "0")}`);
  const outcomes = await Promise.allSettled(invented.map((secret) => keys.authenticate(secret)));
  expect(outcomes).toEqual(
    Array(500).fill(expect.objectContaining({ reason: expect.objectContaining({ code: "invalid_api_key" }) })),
  );
  expect([...new Set(reads)]).toEqual(["keys find"]);
  expect(reads.length).toBeLessThan(50);
});

test("a key is only issued for an account that exists", async () => {
  const { keys } = shared.a;
  await expect(keys.issue("acct_none", {})).rejects.toMatchObject({ code: "not_found" });
});

test("a key revoked in one instance is refused by a paid call in another at once", async () => {
  const { a, b } = shared;
  const { key, secret } = await issueKey(a, { requestsPerMinute: 2 });
  const caller = await b.keys.authenticate(secret);
  const begunAt = performance.now();
  await take(b, caller, call());

  await a.keys.revoke(key.id);
  await expect(take(b, caller, call())).rejects.toMatchObject({ code: "invalid_api_key" });
  await expect(b.keys.authenticate(secret)).rejects.toMatchObject({ code: "invalid_api_key" });
  const counted = Number(await b.redis.hget(`limits:{${key.id}}:buckets`, "requests"));
  // The refused call is not counted; the other one is refilled over half a minute.
  expect(counted).toBeLessThanOrEqual(1);
  expect(counted).toBeGreaterThanOrEqual(1 - (performance.now() - begunAt) / 30_000 - 0.01);
});

test("provider keys are read once, also if there are none, and again for the first call after a change", async () => {
  const { a, b, clock } = shared;
  const { account, secret } = await issueKey(a);
  const caller = await b.keys.authenticate(secret);
  const ids = async () => (await b.keys.providerKeysOf(caller)).map(({ id }) => id);
  expect(await ids()).toEqual([]);
  const key = { id: "pkey_1", upstream: "openai", config: {}, sealed: "sealed", label: "sk-...AbCd", version: 1 };
  await createProviderKeys({ mongo: a.mongo, clock }).insert(account.id, { ...key, state: undefined });
  await take(b, caller, call());
  expect(await ids()).toEqual([]);
  await a.keys.epochChanged();
  await take(b, caller, call());
  expect(await ids()).toEqual([key.id]);
});

test("a frozen account gets no slot, and neither does a key that has expired since it was authenticated", async () => {
  const { b, clock } = shared;
  const slot = { requestId: newRequestId(), ttlMs: 60_000 };
  const { account, secret } = await issueKey(b);
  const expiring = await b.keys.issue(account.id, { expiresAt: new Date(clock.now() + 1_000) });
  const caller = await b.keys.authenticate(expiring.secret);
  clock.advance(1_000);
  await expect(b.keys.takeSlot(caller, slot)).rejects.toMatchObject({ code: "key_expired" });

  await b.money.updateAccount(account.id, { frozen: true });
  const frozen = await b.keys.authenticate(secret);
  await expect(b.keys.takeSlot(frozen, slot)).rejects.toMatchObject({ code: "account_frozen" });
});

test("a key revoked in one instance is refused by a free call in another half a second later", async () => {
  const { a, b, clock } = shared;
  const { key, secret } = await issueKey(a);
  await b.keys.authenticate(secret);

  await a.keys.revoke(key.id);
  clock.advance(501);
  await expect(b.keys.authenticate(secret)).rejects.toMatchObject({ code: "invalid_api_key" });
});

test("within half a second a free call reads neither Redis nor MongoDB", async () => {
  const clock = createManualClock();
  const b = await startInstance(await testStores(), clock);
  const { secret } = await issueKey(b);
  await b.keys.authenticate(secret);

  b.redis.disconnect();
  await b.mongo.close();
  clock.advance(500);
  await expect(b.keys.authenticate(secret)).resolves.toBeDefined();
  clock.advance(1);
  await expect(b.keys.authenticate(secret)).rejects.toMatchObject({ code: "no_capacity", retryAfterSeconds: 1 });
});

test("limits changed in one instance apply to the next call in another", async () => {
  const { a, b } = shared;
  const { key, secret } = await issueKey(a);
  const caller = await b.keys.authenticate(secret);
  await take(b, caller, call());

  // Unlike a token, a slot is not refilled over time.
  await a.keys.update(key.id, { limits: { concurrentRequests: 1 } });
  await expect(take(b, caller, call())).rejects.toMatchObject({
    code: "rate_limit_exceeded",
    message: "Rate limit of this API key reached: calls in flight, limit 1.",
  });
  await a.keys.update(key.id, { limits: { concurrentRequests: null } });
  expect(await take(b, caller, call())).toMatchObject({
    rateLimits: { requests: { limit: defaults.requestsPerMinute } },
  });
});

test("a tier or buyback token changed in one instance reaches another", async () => {
  const { a, b, clock } = shared;
  const { account, secret } = await issueKey(a);
  await b.keys.authenticate(secret);

  await a.money.updateAccount(account.id, { tier: "elite", buybackToken: "mint" });
  await a.keys.epochChanged();
  clock.advance(501);
  expect(await b.keys.authenticate(secret)).toMatchObject({ tier: "elite", buybackToken: "mint" });
});

test("a change that never reached Redis is in force after half a minute", async () => {
  const stores = await testStores();
  const clock = createManualClock();
  const [a, b] = [await startInstance(stores), await startInstance(stores, clock)];
  const { key, secret } = await issueKey(a);
  await b.keys.authenticate(secret);

  a.redis.disconnect();
  await expect(a.keys.revoke(key.id)).rejects.toMatchObject({ code: "no_capacity" });
  clock.advance(501);
  await expect(b.keys.authenticate(secret)).resolves.toBeDefined();
  clock.advance(30_000);
  await expect(b.keys.authenticate(secret)).rejects.toMatchObject({ code: "invalid_api_key" });
});

test("a revocation is repeated safely: its time does not change, and every instance is notified again", async () => {
  const { b, clock } = shared;
  const { keys, redis } = b;
  const { key } = await issueKey(b);
  const first = await keys.revoke(key.id);
  const epoch = await redis.get("limits:epoch");
  clock.advance(5_000);
  expect(await keys.revoke(key.id)).toEqual(first);
  expect(first.revokedAt?.getTime()).toBe(clock.now() - 5_000);
  expect(await redis.get("limits:epoch")).not.toBe(epoch);
});

test("the last use of a key is recorded once a minute", async () => {
  const { b, clock } = shared;
  const { keys } = b;
  const { account, secret } = await issueKey(b);
  const start = clock.now();
  const lastUse = async () => ((await keys.list(account.id, { limit: 1 }))[0]?.lastUsedAt?.getTime() ?? 0) - start;

  await keys.authenticate(secret);
  await expect.poll(lastUse).toBe(0);
  clock.advance(59_999);
  await keys.authenticate(secret);
  clock.advance(1);
  expect(await lastUse()).toBe(0);
  await keys.authenticate(secret);
  await expect.poll(lastUse).toBe(60_000);
});

/** An instance on a connection to Redis that the test may break, and a key with these limits. */
async function startOnWire(limits: Partial<Limits>) {
  const stores = await testStores({ oneServer: true });
  const { url, server } = await openFaultyWire(stores.REDIS_URL);
  const clock = createManualClock();
  const instance = await startInstance({ ...stores, REDIS_URL: url.href }, clock);
  const { key, secret } = await issueKey(instance, limits);
  return { server, clock, instance, ...instance, key, secret, caller: await instance.keys.authenticate(secret) };
}

test("while Redis is unavailable unknown keys are refused, known ones recognized, and paid calls get 503", async () => {
  const { server, clock, instance, redis, keys, key, secret, caller } = await startOnWire({
    concurrentRequests: 1,
  });
  const running = call(10);
  const slot = await take(instance, caller, running);

  server.stop();
  clock.advance(501);
  await expect(keys.authenticate(unknown)).rejects.toMatchObject({ code: "invalid_api_key" });
  await expect(keys.authenticate(secret)).resolves.toMatchObject({ keyId: key.id });
  await expect(take(instance, caller, call())).rejects.toMatchObject({ code: "no_capacity", retryAfterSeconds: 1 });
  await expect(keys.revoke(key.id)).rejects.toMatchObject({ code: "no_capacity" });
  clock.advance(501);
  await expect(keys.authenticate(secret)).rejects.toMatchObject({ code: "invalid_api_key" });
  // A call that ends during the outage does not wait for Redis, and its slot is free soon afterwards.
  await keys.release(slot, { usedTokens: 10 });

  server.restore();
  await isConnected(redis);
  expect(await redis.zcard(`limits:{${key.id}}:running`)).toBe(1);
  await expect.poll(() => (clock.advance(1_000), redis.zcard(`limits:{${key.id}}:running`).catch(() => -1))).toBe(0);
});

test("a call that Redis counted without answering gets 503, and is uncounted when Redis answers", async () => {
  const { server, clock, instance, redis, keys, key, caller } = await startOnWire({ requestsPerMinute: 10 });
  // This loads the script: with an unknown one Redis would count nothing before receiving its text.
  const before = call();
  await keys.release(await take(instance, caller, before), { refusedBy });

  server.silence();
  await expect(take(instance, caller, call())).rejects.toMatchObject({ code: "no_capacity", retryAfterSeconds: 1 });
  server.restore();
  await isConnected(redis);
  expect(await redis.zcard(`limits:{${key.id}}:running`)).toBe(1);
  await expect.poll(() => (clock.advance(1_000), redis.zcard(`limits:{${key.id}}:running`))).toBe(0);
  expect(Number(await redis.hget(`limits:{${key.id}}:buckets`, "requests"))).toBe(0);
});

test("calls of a script that Redis ran without answering each end as if it had run for them alone", async () => {
  const limits = { requestsPerMinute: 10, tokensPerMinute: 100 };
  const { server, clock, instance, redis, keys, key, caller } = await startOnWire(limits);
  const [ending, running] = [await take(instance, caller, call(40)), await take(instance, caller, call(20))];

  server.silence();
  const outcomes = await Promise.allSettled([
    keys.release(ending, { usedTokens: 10 }),
    keys.takeSlot(caller, { requestId: newRequestId(), ttlMs: 60_000 }),
    keys.takeTokens(running, 5),
  ]);
  expect(outcomes).toMatchObject([
    { status: "fulfilled" },
    { status: "rejected", reason: { code: "no_capacity", retryAfterSeconds: 1 } },
    { status: "rejected", reason: { code: "no_capacity", retryAfterSeconds: 1 } },
  ]);
  expect(running.takenTokens).toBe(20);
  server.restore();
  await isConnected(redis);
  const runningIds = () => redis.zrange(`limits:{${key.id}}:running`, "0", "-1");
  await expect.poll(() => (clock.advance(1_000), runningIds())).toEqual([running.requestId]);
  const [requests, tokens] = await redis.hmget(`limits:{${key.id}}:buckets`, "requests", "tokens");
  // The refused call no longer counts; tokens of unknown use count until they refill.
  expect(Number(requests)).toBeLessThanOrEqual(2);
  expect(Number(tokens)).toBeLessThanOrEqual(10 + 20 + 5);
  expect(Number(tokens)).toBeGreaterThan(0);
});
