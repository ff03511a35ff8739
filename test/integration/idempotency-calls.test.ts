import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { charges, drawing, type ImageAnswer, imagePrices, images, media } from "../support/generation-setup.ts";
import { answerOf, atProvider, keyed, post } from "../support/idempotency-setup.ts";
import { mockError } from "../support/mock-openai.ts";
import { mockPng } from "../support/mock-openai-media.ts";
import { times } from "../support/money-setup.ts";
import { testStores } from "../support/servers.ts";
import { type Customer, eventually, startService } from "../support/service.ts";
import {
  catalogWith,
  expectUntouched,
  gate,
  type Refusal,
  refusal,
  refusalOf,
  serviceOfFile,
} from "../support/service-setup.ts";
import { openWire } from "../support/wire.ts";

const env = { CATALOG_FILE: catalogWith({}, imagePrices) };
const running = serviceOfFile(env);

describe("the same request again", () => {
  test("speech: the answer as it was, byte for byte, for one charge", async () => {
    const customer = await running.service.account("1");
    const body = { model: "local/speech", input: { text: "Hello" } };
    const first = await post(customer, body, "key-1", media);
    expect(first).toMatchObject({ status: 200, replayed: null, id: expect.stringMatching(/^req_/) });
    const again = await post(customer, body, "key-1", media);
    expect(again).toEqual({ ...first, replayed: "true" });
    await running.service.settled();
    expect(await charges(customer)).toMatchObject([{ id: first.id, amount_usd: `-${first.cost}` }]);
  });

  test("costs nothing, needs no balance, and counts as a request", async () => {
    const customer = await running.service.account("0.01", { limits: { requests_per_minute: 3 } });
    const first = await post(customer, drawing(), "key-1");
    await running.service.settled();
    expect(await customer.available()).toBe("0.00");
    for (let n = 0; n < 2; n++)
      expect(await post(customer, drawing(), "key-1")).toEqual({ ...first, replayed: "true" });
    await eventually(async () => (await post(customer, drawing(), "key-1")).status === 429);
  });

  test("an answer of several megabytes comes back from storage", async () => {
    const customer = await running.service.account("1");
    const noise = Buffer.concat([mockPng, randomBytes(1_500_000)]).toString("base64");
    running.provider.respond({ body: { data: [{ b64_json: noise }, { b64_json: noise }] } });
    const body = atProvider("a lighthouse", { n: 2, response_format: "b64_json" });
    const first = await post(customer, body, "key-1");
    expect(first.text.length).toBeGreaterThan(4_000_000);
    expect((JSON.parse(first.text) as ImageAnswer).data.map(({ b64_json }) => b64_json === noise)).toEqual([
      true,
      true,
    ]);
    const again = await post(customer, body, "key-1");
    expect(again.text === first.text).toBe(true);
    expect(again).toMatchObject({ status: 200, replayed: "true", id: first.id, cost: "0.422" });
  });
});

describe("another request under the same key", () => {
  test("the same body to another endpoint: 409", async () => {
    const customer = await running.service.account("1");
    const body = drawing("a lighthouse", { input: {} });
    expect(await post(customer, body, "key-1", images)).toMatchObject({ status: 200 });
    expect(await post(customer, body, "key-1", media)).toMatchObject({ status: 409 });
  });

  test.each(["", "k".repeat(256)])("an invalid key (%#): 400 that names the header", async (key) => {
    const customer = await running.service.account("1");
    const refused = await refusalOf(await customer.post(images, drawing(), keyed(key)));
    const named: Refusal = {
      status: 400,
      type: "invalid_request_error",
      code: "invalid_value",
      param: "idempotency-key",
    };
    expect(refused).toEqual(refusal({ ...named, message: /255/ }));
    await expectUntouched(running.service, customer, "1.00");
  });
});

describe("many at once", () => {
  test("ten under one key, at two instances: one run, one charge, ten equal answers", async () => {
    const stores = await testStores();
    const settings = { ...env, OPENAI_API_KEY: "sk-operator", OPENAI_BASE_URL: running.provider.url };
    const [one, two] = [await startService(stores, { env: settings }), await startService(stores, { env: settings })];
    // Each waiting request has a slot.
    const customer = await one.account("0.211", { limits: { concurrent_requests: 10 } });
    const answered = gate();
    running.provider.respond({ beforeHeaders: answered.opened });
    const answers = times(10, (at) =>
      answerOf(
        fetch(`${(at % 2 ? one : two).baseUrl}${images}`, {
          method: "POST",
          headers: { authorization: `Bearer ${customer.key}`, "idempotency-key": "key-1" },
          body: JSON.stringify(atProvider()),
        }),
      ),
    );
    await running.provider.request(0);
    answered.open();
    const all = await Promise.all(answers);
    const first = all.find(({ replayed }) => replayed === null);
    expect(first).toMatchObject({ status: 200, cost: "0.211" });
    expect(all.filter((each) => each !== first)).toEqual(times(9, () => ({ ...first, replayed: "true" })));
    await one.settled();
    expect(await charges(customer)).toMatchObject([{ id: first?.id }]);
    expect(running.provider.requests).toHaveLength(1);
  });

  test("requests that wait for a failing call repeat it, one at a time, until one succeeds", async () => {
    const customer = await running.service.account("1");
    const answered = gate();
    running.provider.respond({ ...mockError(400, "no"), beforeHeaders: answered.opened }, mockError(400, "no"));
    const answers = times(6, () => post(customer, atProvider(), "key-1"));
    await running.provider.request(0);
    answered.open();
    const statuses = (await Promise.all(answers)).map(({ status }) => status).toSorted((a, b) => a - b);
    expect(statuses).toEqual([200, 200, 200, 200, 400, 400]);
    await running.service.settled();
    expect(await charges(customer)).toHaveLength(1);
    expect(running.provider.requests).toHaveLength(3);
  });
});

describe("a failed call frees the key", () => {
  test("a large answer that could not be stored: 503, no charge, and the next request succeeds", async () => {
    const stores = await testStores();
    let isDown = false;
    const wire = await openWire(stores.S3_ENDPOINT, (client, s3) =>
      isDown ? client.destroy() : client.pipe(s3).pipe(client),
    );
    const settings = { ...env, OPENAI_API_KEY: "sk-operator", OPENAI_BASE_URL: running.provider.url };
    const service = await startService({ ...stores, S3_ENDPOINT: wire.url.origin }, { env: settings });
    const customer = await service.account("1");
    const answered = gate();
    const large = { body: { data: [{ b64_json: randomBytes(1_100_000).toString("base64") }] } };
    running.provider.respond({ ...large, beforeHeaders: answered.opened }, large);
    const body = atProvider("a lighthouse", { response_format: "b64_json" });
    const first = post(customer, body, "key-1");
    await running.provider.request(0);
    isDown = true;
    wire.cut();
    answered.open();
    expect(await first).toMatchObject({ status: 503, text: expect.stringContaining("no_capacity") as string });
    await expectUntouched(service, customer, "1.00");
    isDown = false;
    expect(await post(customer, body, "key-1")).toMatchObject({ status: 200, replayed: null, cost: "0.211" });
    expect(await post(customer, body, "key-1")).toMatchObject({ status: 200, replayed: "true", cost: "0.211" });
    await service.settled();
    expect(await charges(customer)).toHaveLength(1);
  });

  test("an insufficient balance, then a credit", async () => {
    const customer = await running.service.account("0.001");
    expect(await post(customer, drawing(), "key-1")).toMatchObject({ status: 402 });
    const credit = { amount_usd: "1", idempotency_key: "more" };
    await running.service.admin("POST", `/accounts/${customer.id}/credits`, credit);
    expect(await post(customer, drawing(), "key-1")).toMatchObject({ status: 200, replayed: null });
  });

  test("a request that was refused, then corrected", async () => {
    const customer = await running.service.account("1");
    expect(await post(customer, drawing("x", { size: "4000x16" }), "key-1")).toMatchObject({ status: 400 });
    expect(await post(customer, drawing("x"), "key-1")).toMatchObject({ status: 200, replayed: null });
  });
});

describe("a caller who disconnects or waits", () => {
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

  /** An account for two calls at a time. */
  async function withTwoSlots() {
    const customer = await running.service.account("1", { limits: { concurrent_requests: 2 } });
    /** Takes a slot, if there is one, and is refused for its body. */
    const refusedStatus = async () => (await customer.post(images, {})).status;
    return { customer, refusedStatus };
  }

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

  test("with a key, while another request waits for its answer: at MEDIA_SYNC_TIMEOUT both get 503", async () => {
    const { customer, refusedStatus } = await withTwoSlots();
    const answered = gate();
    running.provider.respond({ beforeHeaders: answered.opened });
    const first = post(customer, atProvider(), "key-1");
    await running.provider.request(0);
    const joined = post(customer, atProvider(), "key-1");
    await eventually(async () => (await refusedStatus()) === 429);
    running.advance(285_000);
    for (const each of [first, joined])
      expect(await each).toMatchObject({
        status: 503,
        text: expect.stringContaining("generation_in_progress") as string,
      });
    answered.open();
    await running.service.settled();
    expect(await post(customer, atProvider(), "key-1")).toMatchObject({ status: 200, replayed: "true" });
    expect(await charges(customer)).toHaveLength(1);
  });

  test("with a key, while waiting for another request's answer: the slot is released", async () => {
    const { customer, refusedStatus } = await withTwoSlots();
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
    await eventually(async () => (await refusedStatus()) === 400);
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
