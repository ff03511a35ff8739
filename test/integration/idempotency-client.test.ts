import OpenAI from "openai";
import { expect, test } from "vitest";
import { charges, fileAt, imagePrices, providerImages } from "../support/generation-setup.ts";
import { type Client, type Customer, eventually } from "../support/service.ts";
import { catalogWith, gate, serviceOfFile } from "../support/service-setup.ts";
import { openWire } from "../support/wire.ts";

const running = serviceOfFile({ CATALOG_FILE: catalogWith({}, imagePrices) });
const syncTimeoutMs = 285_000;
const body = { model: providerImages, prompt: "a lighthouse", response_format: "url" as const };
const headers = { "Idempotency-Key": "key-1" };

/** The official client with its two retries, on a connection that a test can cut. */
async function clientOf({ baseUrl }: Client, { key }: Customer) {
  let cutAnswer = false;
  const { url, cut } = await openWire(baseUrl, (client, service) => {
    client.pipe(service);
    service.on("data", (bytes: Buffer) => {
      if (!cutAnswer) return void client.write(bytes);
      cutAnswer = false;
      client.write(bytes.subarray(0, 100), () => client.destroy());
    });
  });
  const requests: Headers[] = [];
  const statuses: number[] = [];
  /** The pauses between a response and the next request. */
  const pausesMs: number[] = [];
  let answeredAt: number | undefined;
  const openai = new OpenAI({
    apiKey: key,
    baseURL: new URL("/v1", url).href,
    fetch: async (url, init) => {
      requests.push(new Headers(init?.headers));
      if (answeredAt !== undefined) pausesMs.push(performance.now() - answeredAt);
      const response = await fetch(url, init);
      answeredAt = performance.now();
      statuses.push(response.status);
      return response;
    },
  });
  return {
    openai,
    requests,
    statuses,
    pausesMs,
    cut,
    /** Breaks the next response off after 100 bytes. */
    cutNextAnswer: () => {
      cutAnswer = true;
    },
  };
}

/** Expects one run, one charge, and the file. */
async function expectOnce(customer: Customer, answering: ReturnType<OpenAI["images"]["generate"]>) {
  const { data, response } = await answering.withResponse();
  const { bytes } = await fileAt((data as OpenAI.ImagesResponse).data?.[0]?.url ?? "");
  expect(bytes.length).toBeGreaterThan(0);
  await running.service.settled();
  expect(await charges(customer)).toMatchObject([{ id: response.headers.get("x-request-id"), amount_usd: "-0.211" }]);
  expect(response.headers.get("x-xm-cost-usd")).toBe("0.211");
  expect(await customer.available()).toBe("0.789");
  expect(running.provider.requests).toHaveLength(1);
  return response.headers.get("idempotent-replayed");
}

test("the connection dies while the provider works: the client's own retry gets the answer of the one run", async () => {
  const customer = await running.service.account("1");
  const { openai, requests, cut } = await clientOf(running.service, customer);
  const answered = gate();
  running.provider.respond({ beforeHeaders: answered.opened });
  const answering = openai.images.generate(body, { headers });
  const done = expectOnce(customer, answering);
  await running.provider.request(0);
  cut();
  await eventually(() => requests.length === 2);
  answered.open();
  expect(await done).toBe("true");
  expect(requests.map((sent) => sent.get("x-stainless-retry-count"))).toEqual(["0", "1"]);
});

test("the answer is lost in transit: the client's own retry gets it again", async () => {
  const customer = await running.service.account("1");
  const { openai, requests, cutNextAnswer } = await clientOf(running.service, customer);
  cutNextAnswer();
  expect(await expectOnce(customer, openai.images.generate(body, { headers }))).toBe("true");
  expect(requests).toHaveLength(2);
});

test("the work takes longer than MEDIA_SYNC_TIMEOUT: the client repeats after Retry-After and gets the answer", async () => {
  const customer = await running.service.account("1");
  const { openai, statuses, pausesMs } = await clientOf(running.service, customer);
  const answered = gate();
  running.provider.respond({ beforeHeaders: answered.opened });
  const done = expectOnce(customer, openai.images.generate(body, { headers }));
  await running.provider.request(0);
  running.advance(syncTimeoutMs);
  await eventually(() => statuses.includes(503));
  answered.open();
  expect(await done).toBe("true");
  expect(statuses).toEqual([503, 200]);
  expect(pausesMs).toEqual([expect.toSatisfy((ms: number) => ms > 4_900)]);
});

test("without a key a retry after a lost connection is another request: both are run, one is paid", async () => {
  const customer = await running.service.account("1");
  const { openai, cut } = await clientOf(running.service, customer);
  running.provider.respond({ beforeHeaders: new Promise(() => {}) });
  const answering = openai.images.generate(body);
  const first = await running.provider.request(0);
  cut();
  await answering;
  // A provider bills images that nobody waits for, so they are made until their time is over.
  running.advance(syncTimeoutMs);
  await first.closed;
  expect(first.aborted).toBe(true);
  await running.service.settled();
  expect(await customer.available()).toBe("0.789");
  expect(running.provider.requests).toHaveLength(2);
});
