import { describe, expect, test } from "vitest";
import { charges, drawing, type ImageAnswer, imagePrices, images } from "../support/generation-setup.ts";
import { atProvider, keyed, post } from "../support/idempotency-setup.ts";
import { times } from "../support/money-setup.ts";
import { type Customer, eventually } from "../support/service.ts";
import {
  catalogWith,
  expectUntouched,
  gate,
  type Refusal,
  refusal,
  refusalOf,
  serviceOfFile,
} from "../support/service-setup.ts";

const env = { CATALOG_FILE: catalogWith({}, imagePrices) };
const running = serviceOfFile(env);
const never = new Promise<never>(() => {});

describe("the caller disconnects", () => {
  /** Calls, disconnects as soon as the provider has the request, and returns that request. */
  async function disconnecting(customer: Customer, key?: string) {
    const controller = new AbortController();
    const calling = customer.post(images, atProvider(), {
      signal: controller.signal,
      ...(key !== undefined && keyed(key)),
    });
    const request = await running.provider.request(0);
    controller.abort();
    await expect(calling).rejects.toThrow("abort");
    return request;
  }

  test("without a key: the answer that the provider makes is charged", async () => {
    const customer = await running.service.account("1");
    const answered = gate();
    running.provider.respond({ beforeHeaders: answered.opened });
    const request = await disconnecting(customer);
    answered.open();
    await request.closed;
    expect(request.aborted).toBe(false);
    await running.service.settled();
    expect(await charges(customer)).toMatchObject([{ amount_usd: "-0.211" }]);
  });

  test("with a key: the work continues, and its answer is stored and charged once", async () => {
    const customer = await running.service.account("1");
    const answered = gate();
    running.provider.respond({ beforeHeaders: answered.opened });
    const request = await disconnecting(customer, "key-1");
    const joined = post(customer, atProvider(), "key-1");
    answered.open();
    await request.closed;
    expect(request.aborted).toBe(false);
    expect(await joined).toMatchObject({ status: 200, replayed: "true", cost: "0.211" });
    expect(await post(customer, atProvider(), "key-1")).toEqual(await joined);
    await running.service.settled();
    expect(await charges(customer)).toMatchObject([{ id: (await joined).id, amount_usd: "-0.211" }]);
    expect(running.provider.requests).toHaveLength(1);
  });

  test("with a key, and no repeated request: the charge is final, and the answer stays stored", async () => {
    const customer = await running.service.account("1");
    const answered = gate();
    running.provider.respond({ beforeHeaders: answered.opened });
    await disconnecting(customer, "key-1");
    answered.open();
    await running.service.settled();
    expect(await customer.available()).toBe("0.789");
    const late = await post(customer, atProvider(), "key-1");
    expect(late).toMatchObject({ status: 200, replayed: "true" });
    const { data } = JSON.parse(late.text) as ImageAnswer;
    expect((await fetch(data[0]?.url ?? "")).status).toBe(200);
  });

  test("with a key, while waiting for another request's answer: the slot is released", async () => {
    const customer = await running.service.account("1", { limits: { concurrent_requests: 2 } });
    /** Takes a slot, if there is one, and is refused for its body. */
    const refusedStatus = async () => (await customer.post(images, {})).status;
    const [answered, ended] = [gate(), gate()];
    running.provider.respond({ beforeHeaders: answered.opened });
    const first = post(customer, atProvider(), "key-1");
    await running.provider.request(0);
    const controller = new AbortController();
    const waiting = customer.post(images, atProvider(), { signal: controller.signal, ...keyed("key-1") });
    await eventually(async () => (await refusedStatus()) === 429);
    controller.abort();
    await expect(waiting).rejects.toThrow("abort");
    answered.open();
    expect(await first).toMatchObject({ status: 200 });
    running.provider.respond({ beforeHeaders: ended.opened });
    const other = post(customer, atProvider());
    await running.provider.request(1);
    await eventually(async () => (await refusedStatus()) === 400, 10_000);
    ended.open();
    expect(await other).toMatchObject({ status: 200 });
  });

  test("with a key, before the work began: it is done nevertheless", async () => {
    const customer = await running.service.account("1");
    const disconnected = times(8, async (at) => {
      const signal = AbortSignal.timeout(1 + at * 4);
      await customer.post(images, drawing(), { signal, ...keyed(`key-${at}`) }).catch(() => undefined);
    });
    await Promise.all(disconnected);
    const answers = await Promise.all(times(8, (at) => post(customer, drawing(), `key-${at}`)));
    expect(answers.map(({ status }) => status)).toEqual(times(8, () => 200));
    await running.service.settled();
    expect(await charges(customer)).toHaveLength(8);
  });
});

describe("longer than MEDIA_SYNC_TIMEOUT", () => {
  const short = serviceOfFile({ ...env, MEDIA_SYNC_TIMEOUT: "1.5" });

  test("with a key: 503 with Retry-After 5, and the work continues", async () => {
    const customer = await short.service.account("1");
    const answered = gate();
    short.provider.respond({ beforeHeaders: answered.opened });
    const response = await customer.post(images, atProvider(), keyed());
    expect([response.headers.get("retry-after"), response.headers.get("x-should-retry")]).toEqual(["5", null]);
    const inProgress: Refusal = { status: 503, type: "server_error", code: "generation_in_progress" };
    expect(await refusalOf(response)).toEqual(refusal(inProgress));
    // A request that joins it gets the same response.
    expect(await post(customer, atProvider(), "key-1")).toMatchObject({ status: 503 });
    answered.open();
    await short.service.settled();
    const late = await post(customer, atProvider(), "key-1");
    expect(late).toMatchObject({ status: 200, replayed: "true", cost: "0.211" });
    expect(await charges(customer)).toMatchObject([{ id: response.headers.get("x-request-id") }]);
    expect(late.id).toBe(response.headers.get("x-request-id"));
    expect(short.provider.requests).toHaveLength(1);
  });

  test("without a key: the work is aborted, nothing is charged, 504 with x-should-retry false", async () => {
    const customer = await short.service.account("1");
    short.provider.respond({ beforeHeaders: never });
    const response = await customer.post(images, atProvider());
    expect(response.headers.get("x-should-retry")).toBe("false");
    const outOfTime: Refusal = { status: 504, type: "server_error", code: "upstream_timeout" };
    expect(await refusalOf(response)).toEqual(refusal(outOfTime));
    const request = await short.provider.request(0);
    await request.closed;
    expect(request.aborted).toBe(true);
    await expectUntouched(short.service, customer, "1.00");
  });
});
