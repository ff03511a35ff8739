import { expect, test } from "vitest";
import { newRequestId } from "../../shared/platform/ids.ts";
import { defaults, issueKey, refusedBy, startInstance, take } from "../support/keys-instance.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { ownServers, testStores } from "../support/servers.ts";

const unknown = `live_${"A".repeat(40)}`;
const call = (tokens = 1) => ({ requestId: newRequestId(), tokens, ttlMs: 60_000 });

test("a key is shown once, stored as a hash, and identifies its caller", async () => {
  const instance = await startInstance(await testStores());
  const { account, key, secret } = await issueKey(instance, { tokensPerMinute: 5 });
  expect(secret).toMatch(/^live_[0-9A-Za-z]{40}$/);
  expect(key.prefix).toBe(`${secret.slice(0, 8)}...`);
  expect(await instance.keys.authenticate(secret)).toMatchObject({
    keyId: key.id,
    account: account.id,
    tier: "standard",
    buybackToken: null,
    limits: { ...defaults, tokensPerMinute: 5 },
  });
  const stored = await instance.mongo.connection.collection("keys").find().toArray();
  expect(stored).toHaveLength(1);
  expect(JSON.stringify(stored)).not.toContain(secret.slice(8));
});

test("a missing, malformed or unknown key is refused", async () => {
  const { keys } = await startInstance(await testStores());
  for (const secret of [undefined, "", "live_", "sk-123", `${unknown}A`, unknown])
    await expect(keys.authenticate(secret)).rejects.toMatchObject({ code: "invalid_api_key" });
});

test("a key is only issued for an account that exists", async () => {
  const { keys } = await startInstance(await testStores());
  await expect(keys.issue("acct_none", {})).rejects.toMatchObject({ code: "not_found" });
});

test("a key revoked in one instance is refused by a paid call in another at once", async () => {
  const stores = await testStores();
  const [a, b] = [await startInstance(stores), await startInstance(stores)];
  const { key, secret } = await issueKey(a, { requestsPerMinute: 10 });
  const caller = await b.keys.authenticate(secret);
  await take(b, caller, call());

  await a.keys.revoke(key.id);
  await expect(take(b, caller, call())).rejects.toMatchObject({ code: "invalid_api_key" });
  await expect(b.keys.authenticate(secret)).rejects.toMatchObject({ code: "invalid_api_key" });
  expect(Number(await b.redis.hget(`limits:{${key.id}}:buckets`, "requests"))).toBeCloseTo(1, 1);
});

test("a key revoked in one instance is refused by a free call in another half a second later", async () => {
  const stores = await testStores();
  const clock = createManualClock();
  const [a, b] = [await startInstance(stores), await startInstance(stores, clock)];
  const { key, secret } = await issueKey(a);
  await b.keys.authenticate(secret);

  await a.keys.revoke(key.id);
  clock.advance(501);
  await expect(b.keys.authenticate(secret)).rejects.toMatchObject({ code: "invalid_api_key" });
});

test("within half a second a free call reads neither Redis nor MongoDB", async () => {
  const stores = await testStores();
  const clock = createManualClock();
  const b = await startInstance(stores, clock);
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
  const stores = await testStores();
  const [a, b] = [await startInstance(stores), await startInstance(stores)];
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
  const stores = await testStores();
  const clock = createManualClock();
  const [a, b] = [await startInstance(stores), await startInstance(stores, clock)];
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
  const stores = await testStores();
  const clock = createManualClock();
  const { keys, money, redis } = await startInstance(stores, clock);
  const { id } = await money.createAccount({ name: "acme" });
  const { key } = await keys.issue(id, {});
  const first = await keys.revoke(key.id);
  const epoch = await redis.get("limits:epoch");
  clock.advance(5_000);
  expect(await keys.revoke(key.id)).toEqual(first);
  expect(first.revokedAt?.getTime()).toBe(clock.now() - 5_000);
  expect(await redis.get("limits:epoch")).not.toBe(epoch);
});

test("the last use of a key is recorded once a minute", async () => {
  const clock = createManualClock();
  const { keys, money } = await startInstance(await testStores(), clock);
  const { id } = await money.createAccount({ name: "acme" });
  const { secret } = await keys.issue(id, {});
  const start = clock.now();
  const lastUse = async () => ((await keys.list(id, { limit: 1 }))[0]?.lastUsedAt?.getTime() ?? 0) - start;

  await keys.authenticate(secret);
  await expect.poll(lastUse).toBe(0);
  clock.advance(59_999);
  await keys.authenticate(secret);
  clock.advance(1);
  expect(await lastUse()).toBe(0);
  await keys.authenticate(secret);
  await expect.poll(lastUse).toBe(60_000);
});

test("while Redis is unavailable unknown keys are refused, known ones recognized, and paid calls get 503", async () => {
  const { redis: server, stores } = await ownServers({ redis: true });
  const clock = createManualClock();
  const instance = await startInstance(stores, clock);
  const { keys } = instance;
  const { key, secret } = await issueKey(instance, { concurrentRequests: 1 });
  const caller = await keys.authenticate(secret);
  const running = call(10);
  const slot = await take(instance, caller, running);

  await server.stop();
  clock.advance(501);
  await expect(keys.authenticate(unknown)).rejects.toMatchObject({ code: "invalid_api_key" });
  await expect(keys.authenticate(secret)).resolves.toMatchObject({ keyId: key.id });
  await expect(take(instance, caller, call())).rejects.toMatchObject({ code: "no_capacity", retryAfterSeconds: 1 });
  await expect(keys.revoke(key.id)).rejects.toMatchObject({ code: "no_capacity" });
  clock.advance(501);
  await expect(keys.authenticate(secret)).rejects.toMatchObject({ code: "invalid_api_key" });
  // A call that ends during the outage does not wait for Redis, and its slot is free soon afterwards.
  await keys.release(slot, { usedTokens: 10 });

  await server.start();
  await expect.poll(() => instance.redis.ping().catch(() => "unavailable")).toBe("PONG");
  expect(await instance.redis.zcard(`limits:{${key.id}}:running`)).toBe(1);
  await expect
    .poll(() => (clock.advance(1_000), instance.redis.zcard(`limits:{${key.id}}:running`).catch(() => -1)))
    .toBe(0);
});

test("a call that Redis counted without answering gets 503, and is uncounted when Redis answers", async () => {
  const { redis: server, stores } = await ownServers({ redis: true });
  const clock = createManualClock();
  const instance = await startInstance(stores, clock);
  const { keys, redis } = instance;
  const { key, secret } = await issueKey(instance, { requestsPerMinute: 10 });
  const caller = await keys.authenticate(secret);
  // This loads the script: with an unknown one Redis would count nothing before receiving its text.
  const before = call();
  await keys.release(await take(instance, caller, before), { refusedBy });

  await server.kill("SIGSTOP");
  await expect(take(instance, caller, call())).rejects.toMatchObject({ code: "no_capacity", retryAfterSeconds: 1 });
  await server.kill("SIGCONT");
  await expect.poll(() => redis.ping().catch(() => "unavailable")).toBe("PONG");
  expect(await redis.zcard(`limits:{${key.id}}:running`)).toBe(1);
  await expect.poll(() => (clock.advance(1_000), redis.zcard(`limits:{${key.id}}:running`))).toBe(0);
  expect(Number(await redis.hget(`limits:{${key.id}}:buckets`, "requests"))).toBe(0);
});

test("calls of a script that Redis ran without answering each end as if it had run for them alone", async () => {
  const { redis: server, stores } = await ownServers({ redis: true });
  const clock = createManualClock();
  const instance = await startInstance(stores, clock);
  const { keys, redis } = instance;
  const { key, secret } = await issueKey(instance, { requestsPerMinute: 10, tokensPerMinute: 100 });
  const caller = await keys.authenticate(secret);
  const [ending, running] = [await take(instance, caller, call(40)), await take(instance, caller, call(20))];

  await server.kill("SIGSTOP");
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
  await server.kill("SIGCONT");
  await expect.poll(() => redis.ping().catch(() => "unavailable")).toBe("PONG");
  const runningIds = () => redis.zrange(`limits:{${key.id}}:running`, "0", "-1");
  await expect.poll(() => (clock.advance(1_000), runningIds())).toEqual([running.requestId]);
  const [requests, tokens] = await redis.hmget(`limits:{${key.id}}:buckets`, "requests", "tokens");
  // The refused call no longer counts; tokens of unknown use count until they refill.
  expect(Number(requests)).toBeLessThanOrEqual(2);
  expect(Number(tokens)).toBeLessThanOrEqual(10 + 20 + 5);
  expect(Number(tokens)).toBeGreaterThan(0);
});
