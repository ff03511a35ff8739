import { afterEach, describe, expect, test } from "vitest";
import { bucketOfFile } from "../support/bucket-of-file.ts";
import { charges } from "../support/generation-setup.ts";
import { type Endpoint, endpoints, type Fields, mediaCatalog, providers, send } from "../support/media-endpoints.ts";
import { mockError } from "../support/mock-openai.ts";
import { type Customer, eventually } from "../support/service.ts";
import {
  entriesOf,
  expectUntouched,
  invalidValue,
  nanoUsd,
  refusal,
  refusalOf,
  serviceOfFile,
  upstreamError,
} from "../support/service-setup.ts";

const bucket = bucketOfFile();
const running = serviceOfFile({ S3_BUCKET: bucket.name, CATALOG_FILE: mediaCatalog() });

/** No file that came in a request remains, whether the call succeeded or was refused. */
afterEach(async () => {
  await eventually(async () => (await bucket.count("uploads/")) === 0);
});

const usdOf = (nano: bigint) => `${nano / 1_000_000_000n}.${String(nano % 1_000_000_000n).padStart(9, "0")}`;
const once = { headers: { "idempotency-key": "once" } };

describe.each(Object.entries<Endpoint>(endpoints))("%s", (_, endpoint) => {
  const { path, costNanoUsd, heldNanoUsd = costNanoUsd, other } = endpoint;
  const ask = (customer: Customer, fields: Fields = {}, init = {}) =>
    send(running.service, customer, endpoint, fields, init);

  test("what can be charged is enough; the same under its key is free", async () => {
    const customer = await running.service.account(usdOf(heldNanoUsd));
    const first = await ask(customer, {}, once);
    const answer = Buffer.from(await first.arrayBuffer());
    expect(first.status).toBe(200);
    const [entry] = await entriesOf(running.service, customer);
    expect(entry?.request).toMatchObject({ endpoint: path, status: "succeeded", upstream: "local" });
    expect(nanoUsd(await customer.available())).toBe(heldNanoUsd - costNanoUsd);
    const again = await ask(customer, {}, once);
    expect(Buffer.from(await again.arrayBuffer())).toEqual(answer);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    for (const { headers } of [first, again]) expect(nanoUsd(headers.get("x-xm-cost-usd") ?? "")).toBe(costNanoUsd);
    expect(first.headers.get("x-ratelimit-limit-requests")).toMatch(/^\d+$/);
    expect((await ask(customer)).status).toBe(402);
    await running.service.settled();
    expect(await charges(customer)).toHaveLength(1);
  });

  test("a nano-USD less is 402, and nothing is held", async () => {
    const usd = usdOf(heldNanoUsd - 1n);
    const customer = await running.service.account(usd);
    const code = "insufficient_balance";
    const message = new RegExp(`can cost ${usdOf(heldNanoUsd).replace(/0+$/, "")} USD; the balance has ${usd}`);
    expect(await refusalOf(await ask(customer))).toEqual(
      refusal({ status: 402, type: "insufficient_quota", code, message }),
    );
    await expectUntouched(running.service, customer, usd);
  });

  test("the elite tier costs exactly its discount less; another request under the key is a conflict", async () => {
    const customer = await running.service.account("1", { tier: "elite" });
    await (await ask(customer, {}, once)).arrayBuffer();
    const refused = await refusalOf(await ask(customer, other, once));
    expect(refused).toMatchObject({ status: 409, error: { code: "conflict" } });
    await running.service.settled();
    expect(nanoUsd("1.00") - nanoUsd(await customer.available())).toBe((costNanoUsd * 85n) / 100n);
  });
});

test.each([
  ["images", providers.images, "prompt"],
  ["image edits in JSON", providers.images, "image"],
  ["image edits in a form", providers.images, "image"],
  ["transcriptions", providers.transcription, "file"],
  ["translations", providers.transcription, "file"],
  ["speech", providers.speech, "input"],
] as const)("%s: a provider that refuses, fails or breaks off costs nothing", async (name, model, param) => {
  const customer = await running.service.account("1");
  const change = { model, size: undefined, voice: name === "speech" ? "alloy" : undefined };
  const ask = () => send(running.service, customer, endpoints[name], change);
  running.provider.respond(mockError(400, "That is not done here.", { param }));
  expect(await refusalOf(await ask())).toEqual(refusal(invalidValue(param, /not done here/)));
  for (const answer of [mockError(500, "sk-secret broke"), { cutAfter: -1 }]) {
    running.provider.respond(answer);
    const refused = await refusalOf(await ask());
    expect(refused).toEqual(refusal(upstreamError));
    expect(refused.error.message).not.toContain("sk-secret");
  }
  await expectUntouched(running.service, customer, "1.00");
  expect(await charges(customer)).toEqual([]);
  // A success closes the breaker for the other tests.
  expect((await ask()).status).toBe(200);
});

test.each(["image edits in JSON", "image edits in a form", "transcriptions", "translations"] as const)(
  "%s: nothing of a caller who disconnects remains",
  async (name) => {
    const customer = await running.service.account("1");
    const leaving = new AbortController();
    const init = { signal: leaving.signal };
    const asked = send(running.service, customer, endpoints[name], { prompt: "slow:20000" }, init);
    await eventually(() => running.isWaiting(20_000));
    expect(await bucket.count("uploads/")).toBe(1);
    leaving.abort();
    await expect(asked).rejects.toThrow("abort");
    running.advance(20_000);
    await running.service.settled();
  },
);
