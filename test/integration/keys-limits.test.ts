import fc from "fast-check";
import { expect, test } from "vitest";
import type { RateLimits, Slot } from "../../api/keys/index.ts";
import type { ServiceError } from "../../shared/errors.ts";
import type { Limits } from "../../shared/key-records/index.ts";
import { newRequestId } from "../../shared/platform/ids.ts";
import { keysOf } from "../support/jobs-setup.ts";
import {
  type Instance,
  instancesOfFile,
  issueKey,
  refusedBy,
  startInstance,
  take as takeIn,
  uploads,
} from "../support/keys-instance.ts";
import { ownServers, testStores } from "../support/servers.ts";

const shared = instancesOfFile();

/** A key with these limits, and shorthands for using it. */
async function setup(limits: Partial<Limits>, instance: Instance = shared.a) {
  const { keys, redis } = instance;
  const { key, secret } = await issueKey(instance, limits);
  const caller = await keys.authenticate(secret);
  const taking = (tokens = 1, requestId = newRequestId(), isSmall = false) =>
    takeIn(instance, caller, { requestId, tokens, ttlMs: 60_000, isSmall });
  const take = async (...how: Parameters<typeof taking>) => (await taking(...how)).rateLimits;
  const refused = async (tokens = 1): Promise<ServiceError> =>
    take(tokens).then(
      () => Promise.reject(new Error("it was taken")),
      (error: ServiceError) => error,
    );
  return { keys, redis, key, secret, caller, take, taking, refused };
}

const outcomes = async (takes: readonly Promise<unknown>[]) => {
  const settled = await Promise.allSettled(takes);
  const taken = settled.filter(({ status }) => status === "fulfilled").length;
  const codes = new Set(settled.flatMap((one) => (one.status === "rejected" ? [one.reason.code as string] : [])));
  return { taken, codes: [...codes] };
};

test.each([
  ["requests a minute", { requestsPerMinute: 20 }, 1],
  ["tokens a minute", { tokensPerMinute: 200 }, 10],
  ["tokens a minute, taken with the slot,", { tokensPerMinute: 200 }, 10, true],
  ["calls in flight", { concurrentRequests: 20 }, 1],
])(
  "of 200 calls at once in two instances, a limit of 20 %s lets exactly 20 through",
  async (_, limits, tokens, isSmall = false) => {
    const { secret, take } = await setup(limits);
    const other = shared.b;
    const caller = await other.keys.authenticate(secret);
    const start = Date.now();
    const takes = Array.from({ length: 200 }, (_, index) =>
      index % 2 === 0
        ? take(tokens, newRequestId(), isSmall)
        : takeIn(other, caller, { requestId: newRequestId(), tokens, ttlMs: 60_000, isSmall }),
    );
    const { taken, codes } = await outcomes(takes);
    // A minute adds 20 requests, so on a very slow machine one or two more are allowed.
    const refilled = "concurrentRequests" in limits ? 0 : Math.floor((Date.now() - start) / 3_000);
    expect(taken).toBeGreaterThanOrEqual(20);
    expect(taken).toBeLessThanOrEqual(20 + refilled);
    expect(codes).toEqual(["rate_limit_exceeded"]);
  },
);

test("a slot says how many calls of its key were in flight before it, in all instances", async () => {
  const { secret, keys, taking } = await setup({});
  const other = shared.b;
  const caller = await other.keys.authenticate(secret);
  const [first, second] = [
    await taking(),
    await takeIn(other, caller, { requestId: "req_2", tokens: 1, ttlMs: 60_000 }),
  ];
  expect([first.inFlight, second.inFlight]).toEqual([0, 1]);
  await keys.release(first);
  expect((await taking()).inFlight).toBe(1);
});

/** Expects what is left of a limit, and what has been refilled since it began: one in each period. */
function expectLeft(left: number, least: number, refillMs: number, begunAt: number): void {
  expect(left).toBeGreaterThanOrEqual(least);
  expect(left).toBeLessThanOrEqual(least + Math.floor((performance.now() - begunAt) / refillMs));
}

test("the remaining amount and the time until the limit is full again are returned", async () => {
  const limits = { requestsPerMinute: 60, tokensPerMinute: 6_000 };
  const expected = { limit: 6_000, remaining: 5_400, resetMs: 6_000 };
  expect(await (await setup(limits)).take(600, newRequestId(), true)).toEqual({
    requests: { limit: 60, remaining: 59, resetMs: 1_000 },
    tokens: expected,
  });
  const { take } = await setup(limits);
  const begunAt = performance.now();
  const { requests, tokens } = await take(600);
  // The tokens are counted some time after the request.
  const remaining = 60 - Math.ceil(requests.resetMs / 1_000);
  expect(requests).toEqual({ limit: 60, remaining, resetMs: expect.any(Number) as number });
  expect(tokens).toEqual(expected);
  expect(requests.resetMs).toBeLessThanOrEqual(1_000);
  expect(requests.resetMs).toBeGreaterThanOrEqual(Math.max(0, 1_000 - Math.ceil(performance.now() - begunAt)));
});

test("a call refused by one limit costs nothing of any", async () => {
  const { take, refused } = await setup({ requestsPerMinute: 3, tokensPerMinute: 100, concurrentRequests: 2 });
  const begunAt = performance.now();
  await take(60);
  for (let n = 0; n < 20; n++) expect((await refused(100)).message).toContain("tokens a minute, limit 100");
  expectLeft((await take(1)).requests.remaining, 1, 20_000, begunAt);
  for (let n = 0; n < 20; n++) expect((await refused(1)).message).toContain("calls in flight, limit 2");
  const { redis, key, ...other } = await setup({ requestsPerMinute: 1, concurrentRequests: 5 });
  await other.take(1, "req_1");
  await expect(other.take(1, "req_2")).rejects.toThrow("requests a minute, limit 1");
  expect(await redis.zrange(`limits:{${key.id}}:running`, "0", "-1")).toEqual(["req_1"]);
});

/** Expects a wait in whole seconds, less the time that has passed here since it began. */
function expectWait(error: ServiceError, seconds: number, begunAt: number): void {
  expect(error.retryAfterSeconds).toBeLessThanOrEqual(Math.ceil(seconds));
  expect(error.retryAfterSeconds).toBeGreaterThanOrEqual(Math.ceil(seconds - (performance.now() - begunAt) / 1_000));
}

test("Retry-After is the true wait", async () => {
  const tokens = await setup({ tokensPerMinute: 600 });
  const tokensAt = performance.now();
  await tokens.take(600);
  expectWait(await tokens.refused(600), 60, tokensAt);

  const requests = await setup({ requestsPerMinute: 2 });
  const requestsAt = performance.now();
  await requests.take();
  await requests.take();
  const error = await requests.refused();
  expect(error.message).toBe("Rate limit of this API key reached: requests a minute, limit 2.");
  expectWait(error, 30, requestsAt);
  expect(error.shouldRetry).toBeUndefined();

  const slots = await setup({ concurrentRequests: 1 });
  await slots.take();
  expect(await slots.refused()).toMatchObject({ retryAfterSeconds: 1 });
});

test("a call that asks for more tokens than the limit allows is answered that it can never pass", async () => {
  const { refused } = await setup({ tokensPerMinute: 600 });
  const error = await refused(601);
  expect(error).toMatchObject({ code: "rate_limit_exceeded", retryAfterSeconds: 60, shouldRetry: false });
  expect(error.message).toContain("can never pass");
});

test("the same request counts once", async () => {
  const { keys, caller } = await setup({ requestsPerMinute: 1, concurrentRequests: 1 });
  for (let n = 0; n < 2; n++)
    expect(await keys.takeSlot(caller, { requestId: "req_1", ttlMs: 60_000 })).toMatchObject({
      rateLimits: { requests: { remaining: 0 } },
    });
});

test("an uncounted release returns everything, once; a counted one all but the request", async () => {
  const { keys, taking, take } = await setup({ requestsPerMinute: 3, tokensPerMinute: 3, concurrentRequests: 2 });
  const begunAt = performance.now();
  const first = await taking(1, "req_1");
  const second = await taking(1, "req_2");
  for (let n = 0; n < 3; n++) await keys.release(first, { refusedBy });
  for (let n = 0; n < 3; n++) await keys.release(second);
  for (const [id, requestsLeft, tokensLeft] of [
    ["req_3", 1, 2],
    ["req_4", 0, 1],
  ] as const) {
    const { requests, tokens } = await take(1, id);
    expectLeft(requests.remaining, requestsLeft, 20_000, begunAt);
    expectLeft(tokens.remaining, tokensLeft, 20_000, begunAt);
  }
  await expect(take(1, "req_5")).rejects.toMatchObject({ code: "rate_limit_exceeded" });
});

test("uploads of a key have a separate rate and slots", async () => {
  const { keys, caller, take, redis, key } = await setup({ requestsPerMinute: 1, concurrentRequests: 1 });
  const takeSlot = (requestId: string) => keys.takeUploadSlot(caller, { requestId, ttlMs: 60_000 });
  await take(1, "req_1");
  const begunAt = performance.now();
  const running = [await takeSlot("upl_1"), await takeSlot("upl_2")];
  await expect(takeSlot("upl_3")).rejects.toThrow(`uploads at once, limit ${uploads.concurrent}`);
  for (const each of running) await keys.release(each);
  let taken = running.length;
  let refused: unknown;
  const takeNext = async () => {
    await keys.release(await takeSlot(`upl_next_${taken}`));
    taken++;
  };
  while (refused === undefined) await takeNext().catch((error: unknown) => (refused = error));
  expectLeft(taken, uploads.perMinute, 60_000 / uploads.perMinute, begunAt);
  expect(refused).toMatchObject({
    code: "rate_limit_exceeded",
    message: `Rate limit of this API key reached: uploads a minute, limit ${uploads.perMinute}.`,
  });
  expect(await keysOf(redis, `limits:*${key.id}*:uploads:*`)).toEqual([`limits:{${key.id}}:uploads:buckets`]);
});

test("a key revoked in the meantime is refused when an upload or a call takes a slot", async () => {
  const { keys, caller, key } = await setup({});
  await keys.revoke(key.id);
  for (const take of ["takeSlot", "takeUploadSlot"] as const)
    await expect(keys[take](caller, { requestId: newRequestId(), ttlMs: 1 })).rejects.toMatchObject({
      code: "invalid_api_key",
    });
});

test("the end of a call frees its slot and returns the tokens it did not use, never over the limit", async () => {
  const { keys, taking, take } = await setup({ tokensPerMinute: 10, concurrentRequests: 1 });
  const begunAt = performance.now();
  await keys.release(await taking(8, "req_1"), { usedTokens: 3 });
  const slot = await taking(1, "req_2");
  expectLeft(slot.rateLimits.tokens.remaining, 6, 6_000, begunAt);
  await keys.release({ ...slot, takenTokens: 1_000 });
  expect(await take(10, "req_3")).toMatchObject({ tokens: { remaining: 0 } });
});

test("a call that used more than it took leaves a debt, of one limit at the most", async () => {
  const { keys, redis, key, taking, refused } = await setup({ tokensPerMinute: 100 });
  const begunAt = performance.now();
  await keys.release(await taking(10, "req_1"), { usedTokens: 150 });
  const error = await refused(1);
  expectWait(error, 30, begunAt);
  expect(error.message).toContain("earlier calls used more");
  await redis.del(`limits:{${key.id}}:buckets`);
  await keys.release(await taking(10, "req_2"), { usedTokens: 1_000_000 });
  expect(Number(await redis.hget(`limits:{${key.id}}:buckets`, "tokens"))).toBe(200);
});

test("a bucket refills continuously", async () => {
  const { take } = await setup({ requestsPerMinute: 600, concurrentRequests: 10_000 });
  await outcomes(Array.from({ length: 600 }, () => take()));
  // One request is refilled every 100 ms.
  await expect
    .poll(
      () =>
        take().then(
          () => "taken",
          () => "refused",
        ),
      { interval: 10 },
    )
    .toBe("taken");
});

test("the slot of a call past its deadline is free, while another call runs on", async () => {
  const { take, refused, redis, key } = await setup({ concurrentRequests: 2 });
  const running = `limits:{${key.id}}:running`;
  await take(1, "req_long");
  await take(1, "req_dead");
  expect((await refused()).message).toContain("calls in flight, limit 2");
  // In test/timing it passes by itself.
  await redis.zadd(running, "XX", 1, "req_dead");
  await take(1, "req_next");
  expect(await redis.zrange(running, "0", "-1")).toEqual(["req_long", "req_next"]);
});

test("everything stored for a key is under one hash tag and expires by itself", async () => {
  const { redis, key, keys, taking, take } = await setup({ requestsPerMinute: 2 });
  await keys.release(await taking(1, "req_1"), { usedTokens: 1 });
  await take(1, "req_2");
  const names = (await keysOf(redis, `*${key.id}*`)).toSorted();
  expect(names).toEqual([`limits:{${key.id}}:buckets`, `limits:{${key.id}}:running`]);
  for (const name of names) {
    const ttlMs = await redis.pttl(name);
    expect(ttlMs).toBeGreaterThan(0);
    expect(ttlMs).toBeLessThanOrEqual(60_001);
  }
});

test("the scripts are loaded again by a Redis that lost them", async () => {
  const { redis, take, taking, keys } = await setup({ concurrentRequests: 1 });
  await redis.script("FLUSH");
  const slot = await taking(1, "req_1");
  await redis.script("FLUSH");
  await keys.release(slot, { usedTokens: 1 });
  await expect(take()).resolves.toBeDefined();
});

test("a key's commands of one turn are one script, which reuses the slots that it frees", async () => {
  const { stores } = await ownServers({ redis: true });
  const { keys, redis, caller, taking } = await setup(
    { concurrentRequests: 3, tokensPerMinute: 30 },
    await startInstance(stores),
  );
  const begunAt = performance.now();
  const running = await Promise.all(["req_1", "req_2", "req_3"].map((id) => taking(10, id)));
  const scripts = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info("commandstats"))?.[1]);
  const before = await scripts();
  const [, , taken] = await Promise.all([
    keys.release(running[0] as Slot),
    keys.takeTokens(running[1] as Slot, 5),
    keys.takeSlot(caller, { requestId: "req_4", ttlMs: 60_000 }),
    keys.release(running[2] as Slot, { usedTokens: 4 }),
  ]);
  expect(await scripts()).toBe(before + 1);
  // In order: the first call's tokens are free again, those of later calls are not.
  expectLeft(taken.rateLimits.tokens.remaining, 30 - 10 - 10 - 5, 2_000, begunAt);
  expect(await redis.zrange(`limits:{${caller.keyId}}:running`, "0", "-1")).toEqual(["req_2", "req_4"]);
});

/** A call's effects on its limits, by the id of the call. */
const step = fc.record({
  kind: fc.constantFrom("takeSlot", "takeTokens", "release"),
  id: fc.integer({ min: 1, max: 5 }),
  tokens: fc.integer({ min: 1, max: 7 }),
  /** A small call takes its tokens with its slot; a release far from the limits waits for other commands. */
  isSmall: fc.boolean(),
  isFar: fc.boolean(),
});

test("commands in one script have the same results as single commands", async () => {
  // A token is refilled every six seconds, a request every fifteen.
  const limits = { requestsPerMinute: 4, tokensPerMinute: 10, concurrentRequests: 2 };
  // A clock that only tests move would let one of them refresh its key at every step.
  const stores = await testStores();
  const together = await setup(limits, await startInstance(stores));
  const single = await setup(limits, await startInstance(stores));
  const { redis } = together;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 30 }), async (steps) => {
      const run = async ({ keys, caller }: typeof single, { kind, id, tokens, isSmall, isFar }: (typeof steps)[0]) => {
        const quota = { ...caller.limits, name: `{${caller.keyId}}` };
        const requestId = `req_${id}`;
        const bucket = { limit: 10, remaining: isFar ? 10 : 0, resetMs: 0 };
        const rateLimits: RateLimits = { requests: bucket, tokens: bucket };
        const slot = { caller, requestId, quota, inFlight: 0, rateLimits, takenTokens: 3 };
        if (kind === "takeSlot") {
          const taken = await keys.takeSlot(caller, { requestId, ttlMs: 60_000, ...(isSmall && { tokens }) });
          return `${taken.requestId} ${taken.takenTokens}`;
        }
        if (kind === "takeTokens") await keys.takeTokens(slot, tokens);
        else await keys.release(slot, { usedTokens: tokens });
        return kind;
      };
      const ending = (each: Promise<string>) => each.catch((error: ServiceError) => error.message);
      const begunAt = performance.now();
      const outcomes = await Promise.all(steps.map((each) => ending(run(together, each))));
      const expected: string[] = [];
      for (const each of steps) expected.push(await ending(run(single, each)));
      const state = async ({ key }: typeof single) => {
        const stored = await redis.hmget(`limits:{${key.id}}:buckets`, "requests", "tokens");
        const running = await redis.zrange(`limits:{${key.id}}:running`, "0", "-1");
        return [...stored.map((used) => Math.round(Number(used))), ...running.toSorted()];
      };
      const states = [await state(together), await state(single)];
      for (const { key } of [together, single])
        await redis.del(`limits:{${key.id}}:buckets`, `limits:{${key.id}}:running`);
      // After three seconds half a token is refilled, which changes the rounded results.
      fc.pre(performance.now() - begunAt < 2_500);
      expect(outcomes).toEqual(expected);
      expect(states[0]).toEqual(states[1]);
    }),
    { numRuns: 50 },
  );
});
