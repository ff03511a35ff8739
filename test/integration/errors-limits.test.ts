import { describe, expect, test } from "vitest";
import { movableClock } from "../support/movable-clock.ts";
import { watchRedis } from "../support/own-keys-search.ts";
import { testStores } from "../support/servers.ts";
import { type Customer, eventually, startService } from "../support/service.ts";
import {
  asking,
  expectUntouched,
  gate,
  localModel,
  never,
  providerModel,
  refusal,
  refusalOf,
  serviceOfFile,
  startWithProvider,
} from "../support/service-setup.ts";

const running = serviceOfFile();
const chat = "/v1/chat/completions";
const hi = asking(localModel);
const limited = { status: 429, type: "rate_limit_error", code: "rate_limit_exceeded" };
const full = { status: 503, type: "server_error", code: "no_capacity" };
const limitHeaders = (response: Response) =>
  Object.fromEntries(
    ["limit", "remaining", "reset"].flatMap((what) =>
      ["requests", "tokens"].map((of) => [`${what}-${of}`, response.headers.get(`x-ratelimit-${what}-${of}`)]),
    ),
  );

describe("limits of a key", () => {
  test("every answer carries them: a stream, JSON, embeddings", async () => {
    const limits = { requests_per_minute: 60, tokens_per_minute: 60_000, concurrent_requests: 5 };
    for (const [path, body] of [
      [chat, hi],
      [chat, { ...hi, stream: true }],
      ["/v1/embeddings", { model: "local/embeddings", input: "x" }],
    ] as const) {
      const customer = await running.service.account("1", { limits });
      const response = await customer.post(path, body);
      await response.text();
      expect(limitHeaders(response)).toEqual({
        "limit-requests": "60",
        "remaining-requests": "59",
        "reset-requests": "1s",
        "limit-tokens": "60000",
        "remaining-tokens": expect.stringMatching(/^599\d\d$/),
        "reset-tokens": "1s",
      });
    }
  });

  test("one script takes the slot and the tokens of a small call, and two those of a large one", async () => {
    const stores = await testStores({ oneServer: true });
    const service = await startService(stores);
    const customer = await service.account("1");
    const commands = await watchRedis(stores);
    let made = 0;
    const call = async (content: string) => {
      const response = await customer.post(chat, asking(localModel, content));
      await response.text();
      expect(response.status).toBe(200);
      made++;
    };
    for (const content of ["hi", "hi", "x".repeat(20_000)]) await call(content);
    const operation = /"(enter|take|free)" "(req_\w+)" "[-\d]+" "([-\d]+)"/g;
    const operations = await eventually(() => {
      // A script that Redis does not know yet is sent twice.
      const sent = new Map([...commands.text().matchAll(operation)].map(([all, ...fields]) => [all, fields]));
      const all = [...sent.values()];
      return all.filter(([kind]) => kind === "free").length === made && all;
    });
    const calls = Object.values(Object.groupBy(operations, ([, id = ""]) => id));
    expect(calls.map((one = []) => one.map(([kind]) => kind))).toEqual([
      ["enter", "free"],
      ["enter", "free"],
      ["enter", "take", "free"],
    ]);
    expect(calls.map(([enter] = []) => Number(enter?.[2]) > 0)).toEqual([true, true, false]);
  });

  test("a small call over a limit is refused for it, whatever else is wrong; otherwise for that, and it counts", async () => {
    const wrong = { ...hi, max_tokens: "many" };
    for (const [body, expected] of [
      [hi, { status: 200 }],
      [wrong, { status: 400, error: { param: "max_tokens" } }],
      ["{", { status: 400 }],
    ] as const) {
      const customer = await running.service.account("1", { limits: { requests_per_minute: 1 } });
      const first = await customer.post(chat, body);
      expect(first.ok ? { status: first.status } : await refusalOf(first)).toMatchObject(expected);
      for (const next of [hi, wrong, "{"])
        expect(await refusalOf(await customer.post(chat, next))).toEqual(refusal({ ...limited, message: /limit 1/ }));
    }
  });

  test("tokens a minute: the requested tokens count until the usage is known", async () => {
    const customer = await running.service.account("1", { limits: { tokens_per_minute: 1_000 } });
    const asked = { ...hi, max_tokens: 900 };
    expect((await customer.post(chat, asked)).status).toBe(200);
    const again = await eventually(async () => {
      const response = await customer.post(chat, asked);
      return response.status === 200 && response;
    });
    expect(Number(again.headers.get("x-ratelimit-remaining-tokens"))).toBeLessThan(100);
  });

  test("tokens a minute: no more count than the call could have used, whatever its provider reports", async () => {
    const limits = { tokens_per_minute: 2_000, concurrent_requests: 1 };
    const customer = await running.service.account("1", { limits });
    const asked = { ...asking(providerModel), max_tokens: 10 };
    running.provider.respond({
      usage: { prompt_tokens: 9, completion_tokens: 900_000_000, total_tokens: 900_000_009 },
    });
    expect((await customer.post(chat, asked)).status).toBe(200);
    // The slot is free once the tokens of the first call are counted.
    const again = await eventually(async () => {
      const response = await customer.post(chat, asked);
      return response.status === 200 && response;
    });
    expect(Number(again.headers.get("x-ratelimit-remaining-tokens"))).toBeGreaterThan(1_000);
  });

  test("calls in flight: the slot is free again when the call has ended, however it ended", async () => {
    const customer = await running.service.account("1", { limits: { concurrent_requests: 1 } });
    const { opened, open } = gate();
    running.provider.respond({ beforeHeaders: opened });
    const first = customer.post(chat, asking(providerModel));
    await running.provider.request(0);
    expect(await refusalOf(await customer.post(chat, hi))).toEqual(
      refusal({ ...limited, message: /in flight, limit 1/ }),
    );
    open();
    expect((await first).status).toBe(200);
    await eventually(async () => (await customer.post(chat, asking(localModel, "error:502"))).status === 502);
    await eventually(async () => (await customer.post(chat, hi)).status === 200);
  });
});

describe("capacity", () => {
  test("no worker serves the pool: 503, nothing held; other pools continue", async () => {
    const { service } = await startWithProvider({ WORKER_POOLS: "embeddings" });
    const customer = await service.account("1", { limits: { requests_per_minute: 7 } });
    expect(await refusalOf(await customer.post(chat, hi))).toEqual(refusal({ ...full, message: /No worker/ }));
    await expectUntouched(service, customer, "1.00");
    const good = await customer.post("/v1/embeddings", { model: "local/embeddings", input: "x" });
    expect([good.status, good.headers.get("x-ratelimit-remaining-requests")]).toEqual([200, "6"]);
  });

  test("storage is unavailable: a body over 64 KB is refused, others continue", async () => {
    const { service } = await startWithProvider({ S3_ENDPOINT: "http://127.0.0.1:1" });
    const customer = await service.account("1", { limits: { concurrent_requests: 1 } });
    const large = await customer.post(chat, asking(localModel, "x".repeat(64 * 1024)));
    expect(await refusalOf(large)).toEqual(refusal({ ...full, message: /storage/i }));
    await expectUntouched(service, customer, "1.00");
    expect((await customer.post(chat, hi)).status).toBe(200);
  });

  test("the time of a call is over before a worker is free: 504, and the provider is not called", async () => {
    const { clock, advance } = movableClock();
    const { service, provider } = await startWithProvider({ WORKER_CONCURRENCY_CHAT: "1" }, undefined, clock);
    const customer = await service.account("1");
    provider.always({ beforeHeaders: never });
    const first = customer.post(chat, asking(providerModel));
    await provider.request(0);
    const waiting = customer.post(chat, asking(providerModel));
    await eventually(async () =>
      (await service.admin<{ pools: { waiting: number }[] }>("GET", "/overview")).pools.some(
        ({ waiting }) => waiting === 1,
      ),
    );
    advance(900_500);
    for (const answer of await Promise.all([first, waiting]))
      expect(await refusalOf(answer)).toMatchObject({ status: 504, error: { code: "upstream_timeout" } });
    await service.settled();
    expect(provider.requests).toHaveLength(1);
    expect(await customer.available()).toBe("1.00");
  });

  test("the backlog is over its limit: 503, nothing held", async () => {
    const { service, provider } = await startWithProvider({ BACKLOG_LIMIT: "2", WORKER_CONCURRENCY_CHAT: "1" });
    const customer = await service.account("1");
    const { opened, open } = gate();
    provider.always({ beforeHeaders: opened });
    const first = customer.post(chat, asking(providerModel));
    await provider.request(0);
    // Once the registry has read the queue, the running call no longer counts as backlog: two or three are admitted.
    const waiting: Promise<Response>[] = [];
    let refused: Response | undefined;
    const held = async () =>
      Number((await service.admin<{ held_usd: string }>("GET", `/accounts/${customer.id}`)).held_usd);
    while (refused === undefined && waiting.length < 4) {
      const before = await held();
      const calling = customer.post(chat, asking(providerModel));
      refused = await Promise.race([calling, eventually(async () => (await held()) > before).then(() => undefined)]);
      if (refused === undefined) waiting.push(calling);
    }
    expect(await refusalOf(refused as Response)).toEqual(refusal({ ...full, message: /Too many calls wait/ }));
    expect(waiting.length).toBeGreaterThanOrEqual(1);
    open();
    expect((await Promise.all([first, ...waiting])).map(({ status }) => status)).toEqual(
      Array.from({ length: 1 + waiting.length }, () => 200),
    );
    await service.settled();
    expect(await customer.ledger("usage")).toHaveLength(1 + waiting.length);
  });

  test("jobs over the account's limit are 429, and over the backlog of jobs 503; nothing is held", async () => {
    const env = { ASYNC_JOBS_PER_ACCOUNT: "2", ASYNC_BACKLOG_LIMIT: "3", WORKER_CONCURRENCY_CHAT: "1" };
    const { service, provider } = await startWithProvider(env);
    const { opened, open } = gate();
    provider.always({ beforeHeaders: opened });
    const submit = (customer: Customer) =>
      customer.post(chat, asking(providerModel), { headers: { prefer: "respond-async" } });
    const customers = await Promise.all("abcde".split("").map(() => service.account("1")));
    const [first] = customers as [Customer];
    for (const status of [202, 202]) expect((await submit(first)).status).toBe(status);
    await provider.request(0);
    const tooMany = await submit(first);
    expect(tooMany.headers.get("retry-after")).toBe("10");
    expect(await refusalOf(tooMany)).toEqual(refusal({ ...limited, message: /has 2 jobs that have not ended/ }));
    // The running job counts as waiting until the registry has read the queue.
    let accepted = 1;
    let answer = await submit(customers[accepted] as Customer);
    while (answer.status === 202 && accepted < 4) answer = await submit(customers[++accepted] as Customer);
    expect(answer.headers.get("retry-after")).toBe("60");
    expect(await refusalOf(answer)).toEqual(refusal({ ...full, message: /Too many jobs wait/ }));
    open();
    await service.settled();
    expect(provider.requests).toHaveLength(1 + accepted);
    expect(await first.ledger("usage")).toHaveLength(2);
    expect(await customers[accepted]?.available()).toBe("1.00");
  });
});
