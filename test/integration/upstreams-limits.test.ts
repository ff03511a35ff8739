import { expect, test } from "vitest";
import { type MockOpenai, mockError } from "../support/mock-openai.ts";
import { errorOf, gate, startUpstreams } from "../support/upstreams-setup.ts";

const failTimes = async (mock: MockOpenai, times: number, call: () => { json(): Promise<unknown> }) => {
  for (let i = 0; i < times; i++) {
    mock.respond(mockError(500, "no"));
    await errorOf(call().json());
  }
};

test("five failures in a row open the breaker; then one call at a time probes", async () => {
  const { mocks, call, clock, upstreams } = await startUpstreams(1, { oneModel: true });
  await failTimes(mocks[0], 4, call);
  expect(upstreams.states()["provider-0"]).toBe("ready");
  await failTimes(mocks[0], 1, call);
  expect(upstreams.states()["provider-0"]).toBe("open");
  expect(await errorOf(call().json())).toMatchObject({ code: "no_capacity", retryAfterSeconds: 5 });
  expect(mocks[0].requests).toHaveLength(5);

  clock.advance(5_000);
  expect(upstreams.states()["provider-0"]).toBe("ready");
  const answer = gate();
  mocks[0].respond({ beforeHeaders: answer.promise });
  const probing = call().json();
  await mocks[0].request(5);
  expect(upstreams.states()["provider-0"]).toBe("open");
  expect(await errorOf(call().json())).toMatchObject({ code: "no_capacity" });
  expect(mocks[0].requests).toHaveLength(6);
  answer.resolve();
  await probing;
  expect(upstreams.states()["provider-0"]).toBe("ready");
  await Promise.all([call().json(), call().json()]);
});

test("two callers' probes that fail keep the breaker open, twice as long", async () => {
  const { mocks, call, clock, upstreams } = await startUpstreams(1, { oneModel: true });
  await failTimes(mocks[0], 5, call);
  clock.advance(5_000);
  await failTimes(mocks[0], 2, call);
  clock.advance(9_999);
  expect(upstreams.states()["provider-0"]).toBe("open");
  clock.advance(1);
  expect(upstreams.states()["provider-0"]).toBe("ready");
});

test("a disconnected caller's probe decides nothing: the next call probes", async () => {
  const { mocks, call, clock, upstreams } = await startUpstreams(1, { oneModel: true });
  await failTimes(mocks[0], 5, call);
  clock.advance(5_000);
  mocks[0].respond({ beforeHeaders: new Promise(() => {}) });
  const caller = new AbortController();
  const probing = errorOf(call("test/model", caller.signal).json());
  await mocks[0].request(5);
  caller.abort(new Error("disconnected"));
  await probing;
  expect(upstreams.states()["provider-0"]).toBe("ready");
  await failTimes(mocks[0], 2, call);
  expect(upstreams.states()["provider-0"]).toBe("open");
});

test("an upstream that refuses a request is healthy: that closes the breaker", async () => {
  const { mocks, call, clock, upstreams } = await startUpstreams(1, { oneModel: true });
  await failTimes(mocks[0], 5, call);
  clock.advance(5_000);
  mocks[0].respond(mockError(400, "no"));
  await errorOf(call().json());
  await failTimes(mocks[0], 4, call);
  expect(upstreams.states()["provider-0"]).toBe("ready");
});

test("the first item of a stream closes the breaker, long before its end", async () => {
  const { mocks, call, clock, upstreams } = await startUpstreams(1, { oneModel: true });
  await failTimes(mocks[0], 5, call);
  clock.advance(5_000);
  const rest = gate();
  mocks[0].respond({ beforeEvent: { 1: rest.promise } });
  const items = await call().stream();
  expect(upstreams.states()["provider-0"]).toBe("ready");
  await call().json();
  rest.resolve();
  await Array.fromAsync(items);
});

test("streams that always break in the middle open the breaker too", async () => {
  const { mocks, call, upstreams } = await startUpstreams(1, { oneModel: true });
  mocks[0].always({ cutAfter: 2 });
  for (let i = 0; i < 5; i++) await errorOf(Array.fromAsync(await call().stream()));
  expect(upstreams.states()["provider-0"]).toBe("open");
});

test("failures that one account's requests provoke block the model for that account alone", async () => {
  const { mocks, call, clock, upstreams } = await startUpstreams(1, { oneModel: true });
  const by = (account: string) => () => call("test/model", undefined, account);
  await failTimes(mocks[0], 5, by("acct_bad"));
  expect(await errorOf(by("acct_bad")().json())).toMatchObject({ code: "no_capacity", retryAfterSeconds: 5 });
  expect(upstreams.states()["provider-0"]).toBe("ready");
  await Promise.all([by("acct_good")().json(), by("acct_other")().json()]);

  // Each x402 payer has a separate account, and their number is unlimited.
  await failTimes(mocks[0], 5, () => call("test/model", undefined, `x402:${mocks[0].requests.length}`));
  expect(upstreams.states()["provider-0"]).toBe("ready");
  await by("acct_good")().json();

  // The breaker opens for everyone, so that a bad request as the first probe does not block the model for others.
  await failTimes(mocks[0], 5, call);
  expect(upstreams.states()["provider-0"]).toBe("open");
  clock.advance(5_000);
  await failTimes(mocks[0], 1, by("acct_bad"));
  expect(await errorOf(by("acct_bad")().json())).toMatchObject({ code: "no_capacity", retryAfterSeconds: 10 });
  await by("acct_good")().json();
  expect(upstreams.states()["provider-0"]).toBe("ready");
});

test("a probe that hangs delays the others by five seconds at most", async () => {
  const { mocks, call, clock, upstreams } = await startUpstreams(1, { oneModel: true });
  await failTimes(mocks[0], 5, call);
  clock.advance(5_000);
  mocks[0].respond({ beforeHeaders: new Promise(() => {}) });
  const hanging = errorOf(call("test/model", undefined, "acct_bad").json());
  await mocks[0].request(5);
  expect(await errorOf(call().json())).toMatchObject({ code: "no_capacity" });
  clock.advance(5_000);
  expect(await errorOf(call("test/model", undefined, "acct_bad").json())).toMatchObject({ code: "no_capacity" });
  await call().json();
  expect(upstreams.states()["provider-0"]).toBe("ready");
  clock.advance(60_000);
  expect(await hanging).toMatchObject({ code: "upstream_timeout" });
});

test("failures are counted by model: the upstream is open once all that it serves is", async () => {
  const { mocks, call, upstreams } = await startUpstreams(1);
  await failTimes(mocks[0], 5, call);
  expect(await errorOf(call().json())).toMatchObject({ code: "no_capacity" });
  await call("test/model-0").json();
  expect(upstreams.states()["provider-0"]).toBe("ready");
  await failTimes(mocks[0], 5, () => call("test/model-0"));
  expect(upstreams.states()["provider-0"]).toBe("open");
});

test("failed connections open the breaker for all accounts and models", async () => {
  const { mocks, call, clock, upstreams } = await startUpstreams(1, {
    env: { PROVIDER_0_BASE_URL: "http://127.0.0.1:1" },
  });
  for (let i = 0; i < 5; i++) {
    expect(upstreams.states()["provider-0"]).toBe("ready");
    await errorOf(call("test/model", undefined, "acct_only").json());
  }
  expect(upstreams.states()["provider-0"]).toBe("open");
  expect(await errorOf(call("test/model-0").json())).toMatchObject({ code: "no_capacity", retryAfterSeconds: 5 });
  clock.advance(5_000);
  await errorOf(call().json());
  expect(await errorOf(call("test/model-0").json())).toMatchObject({ code: "no_capacity", retryAfterSeconds: 10 });
  expect(mocks[0].requests).toHaveLength(0);
});

test("neither disconnected callers nor refusals nor 429 open the breaker", async () => {
  const { mocks, call, clock, upstreams } = await startUpstreams(1, { oneModel: true });
  for (let i = 0; i < 6; i++) {
    const caller = new AbortController();
    mocks[0].respond({ beforeHeaders: new Promise(() => {}) });
    const disconnected = errorOf(call("test/model", caller.signal).json());
    await mocks[0].request(3 * i);
    caller.abort();
    await disconnected;
    mocks[0].respond(mockError(400, "no"), mockError(429, "no"));
    await errorOf(call().json());
    await errorOf(call().json());
    clock.advance(1_000);
  }
  expect(upstreams.states()["provider-0"]).toBe("ready");
});

test("a full upstream is passed over for the next; when all are full, the first slot that comes free serves", async () => {
  const { mocks, call } = await startUpstreams(2, { concurrency: 1 });
  const answers = [gate(), gate()];
  mocks.forEach((mock, index) => mock.respond({ beforeHeaders: answers[index]?.promise as Promise<void> }));
  const first = call();
  const second = call();
  const third = call();
  const running = [first.json(), second.json()];
  await Promise.all(mocks.map((mock) => mock.request(0)));
  expect([first.record.upstream, second.record.upstream]).toEqual(["provider-0", "provider-1"]);

  const waiting = third.json();
  expect(third.record.attempts).toBe(0);
  answers[1]?.resolve();
  await waiting;
  expect(third.record).toMatchObject({ attempts: 1, upstream: "provider-1" });
  answers[0]?.resolve();
  await Promise.all(running);
});

test("waiting calls are served in their order, and a disconnected caller no longer waits", async () => {
  const { mocks, call } = await startUpstreams(1, { concurrency: 1 });
  const answer = gate();
  mocks[0].respond({ beforeHeaders: answer.promise });
  const running = call().json();
  await mocks[0].request(0);
  const order: number[] = [];
  const leaver = new AbortController();
  const waiting = [0, 1, 2].map(async (number) => {
    await call("test/model", number === 1 ? leaver.signal : undefined).json();
    order.push(number);
  });
  const reason = new Error("disconnected");
  leaver.abort(reason);
  await expect(waiting[1]).rejects.toBe(reason);
  answer.resolve();
  await Promise.all([running, waiting[0], waiting[2]]);
  expect(order).toEqual([0, 2]);
  expect(mocks[0].requests).toHaveLength(3);
});

test("a call that waits for an upstream is not sent to it when a cooldown begins in the meantime", async () => {
  const { mocks, call } = await startUpstreams(1, { concurrency: 1 });
  const answer = gate();
  mocks[0].respond({ ...mockError(429, "no", { headers: { "retry-after": "20" } }), beforeHeaders: answer.promise });
  const running = errorOf(call().json());
  await mocks[0].request(0);
  const waiting = errorOf(call().json());
  answer.resolve();
  await running;
  expect(await waiting).toMatchObject({ code: "no_capacity", retryAfterSeconds: 20 });
  expect(mocks[0].requests).toHaveLength(1);
});

test("the slot is free again however a call ended", async () => {
  const { mocks, call, clock } = await startUpstreams(1, { concurrency: 1 });
  const ends: [string, () => Promise<unknown>][] = [
    ["answered", () => call().json()],
    ["failed", () => (mocks[0].respond(mockError(500, "no")), errorOf(call().json()))],
    ["streamed", async () => Array.fromAsync(await call().stream())],
    [
      "the reader stopped",
      async () => {
        for await (const _ of await call().stream()) break;
      },
    ],
    [
      "broke off",
      async () => {
        mocks[0].respond({ cutAfter: 2 });
        await errorOf(Array.fromAsync(await call().stream()));
      },
    ],
    [
      "the caller disconnected between two items",
      async () => {
        const caller = new AbortController();
        mocks[0].respond({ beforeEvent: { 2: new Promise(() => {}) } });
        await call("test/model", caller.signal).stream();
        caller.abort();
      },
    ],
    [
      "its time was over while nobody read",
      async () => {
        mocks[0].respond({ beforeEvent: { 2: new Promise(() => {}) } });
        await call().stream();
        clock.advance(300_000);
      },
    ],
  ];
  for (const [name, end] of ends) {
    await end();
    const { json, record } = call();
    await json();
    expect({ name, ...record }).toMatchObject({ name, attempts: 1 });
  }
  expect(clock.pending()).toBe(0);
});
