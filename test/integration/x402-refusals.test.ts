import type { PaymentRequirements } from "@x402/core/types";
import { expect, test } from "vitest";
import { brokenWire } from "../support/money-proxy.ts";
import { payFrom, paySomethingElse } from "../support/payments-setup.ts";
import { type BadPayment, badPayments, type Make, type Payer } from "../support/payments-transactions.ts";
import { startService } from "../support/service.ts";
import { asking, expectUntouched, localModel, refusal, refusalOf } from "../support/service-setup.ts";
import {
  answerOf,
  drawing,
  expectMoney,
  filming,
  media,
  payFor,
  post,
  quoted,
  quoteOf,
  startPaid,
  startWorld,
} from "../support/x402-setup.ts";

const other =
  (terms: (all: Payer) => Promise<Partial<PaymentRequirements>> | Partial<PaymentRequirements>): Make =>
  async (all, required) =>
    paySomethingElse(all.chain, all.payer, required, await terms(all));

/** The same bytes, relabeled for other terms. */
const renamed =
  (terms: Partial<PaymentRequirements>): Make =>
  async ({ chain, payer }, required) => {
    const { header } = await payFrom(chain, payer, required);
    const payload = JSON.parse(Buffer.from(header, "base64").toString("utf8"));
    return Buffer.from(JSON.stringify({ ...payload, accepted: { ...payload.accepted, ...terms } })).toString("base64");
  };

test.each<BadPayment>([
  ["of a smaller amount", other(() => ({ amount: "39999" })), "invalid_exact_svm_payload_amount_mismatch"],
  ["that names a smaller amount", renamed({ amount: "1" }), "requirements_mismatch"],
  [
    "in another asset",
    other(async ({ chain, payer }) => {
      const asset = await chain.createMint();
      await chain.setBalance(payer.address, 1_000_000n, asset);
      await chain.setBalance(chain.payTo, 0n, asset);
      return { asset };
    }),
    "invalid_exact_svm_payload_mint_mismatch",
  ],
  [
    "to another payee",
    other(async ({ chain }) => ({ payTo: (await chain.wallet("0")).address })),
    "invalid_exact_svm_payload_recipient_mismatch",
  ],
  [
    "with another memo",
    other(({ chain }) => ({ extra: { feePayer: chain.feePayer.address, memo: "forged" } })),
    "invalid_exact_svm_payload_memo_mismatch",
  ],
  ["for a quote that nobody gave", renamed({ extra: { memo: "x" } }), "quote_not_found"],
  ...badPayments,
])("a payment %s is refused with its reason and a new quote, and nothing is taken", async (_, make, reason) => {
  const all = await startPaid();
  const { service, chain, provider } = all;
  const required = await quoted(service, drawing());
  const lamports = chain.lamports(chain.feePayer.address);
  const response = await post(service, drawing(), { "PAYMENT-SIGNATURE": await make(all, required) });
  expect((await answerOf(response.clone())).receipt).toMatchObject({ success: false, errorReason: reason });
  const again = await quoteOf(response);
  expect(again).toMatchObject({ error: reason, accepts: [{ amount: "40000" }] });
  expect(again.accepts[0]?.extra["memo"]).not.toBe(required.accepts[0]?.extra["memo"]);
  expect(chain.lamports(chain.feePayer.address)).toBe(lamports);
  expect(chain.calls["sendTransaction"]).toBeUndefined();
  expect(provider.requests).toHaveLength(0);
  await expectMoney(all, service, {});
  const { header, memo } = await payFrom(chain, all.payer, again);
  expect(await answerOf(post(service, drawing(), { "PAYMENT-SIGNATURE": header }))).toMatchObject({ status: 200 });
  await expectMoney(all, service, { [`x402:${memo}`]: { paidMicroUsd: 40_000n, costUsd: "0.04" } });
});

test("a payment is read and simulated once, and its refusal is reported even if no quote can be made", async () => {
  const world = await startWorld();
  const { chain } = world;
  let reads = 0;
  let isBroken = false;
  const MONGODB_URI = await brokenWire(world.stores.MONGODB_URI, ({ find, filter, insert }) => {
    if (find === "quotes" && Object.hasOwn(Object(filter), "_id")) reads += 1;
    return insert === "quotes" && isBroken ? "lose the request" : "pass";
  });
  const service = await startService({ ...world.stores, MONGODB_URI }, { env: world.env });
  const { headers } = await payFor({ chain, payer: await chain.wallet("0.01") }, service, drawing());
  isBroken = true;
  const errorReason = "invalid_exact_svm_transaction_simulation_failed";
  expect(await answerOf(post(service, drawing(), headers))).toMatchObject({
    status: 503,
    code: "no_capacity",
    receipt: { success: false, errorReason },
  });
  expect([reads, chain.calls["simulateTransaction"]]).toEqual([1, 1]);
});

test.each<[string, object, string, { status: number; code: string; param?: string }]>([
  [
    "a body that is invalid",
    drawing({ n: 9 }),
    "/v1/images/generations",
    { status: 400, code: "invalid_value", param: "n" },
  ],
  ["an input that the model has not", filming({ duration: 99 }), media, { status: 400, code: "invalid_value" }],
  [
    "a model that is not there",
    { model: "no/such", prompt: "x" },
    "/v1/images/generations",
    { status: 404, code: "model_not_found" },
  ],
  [
    "a model of another route",
    drawing({ model: "mock/video" }),
    "/v1/images/generations",
    { status: 400, code: "model_not_supported" },
  ],
  [
    "a mint that is not eligible",
    drawing({ buyback_token: "mint" }),
    "/v1/images/generations",
    { status: 400, code: "invalid_value", param: "buyback_token" },
  ],
])("%s is refused before any quote is given", async (_, body, path, expected) => {
  const { service } = await startPaid();
  const response = await post(service, body, {}, path);
  expect(response.headers.has("PAYMENT-REQUIRED")).toBe(false);
  expect(await answerOf(response)).toMatchObject(expected);
});

test("a malformed payment header is 400 and names the header", async () => {
  const { service } = await startPaid();
  expect(await answerOf(post(service, drawing(), { "PAYMENT-SIGNATURE": "@@" }))).toMatchObject({
    status: 400,
    param: "payment-signature",
  });
});

const noKey = { status: 401, type: "authentication_error", code: "invalid_api_key" };

test("an invalid key is 401 without a quote, also with a payment", async () => {
  const all = await startPaid();
  const { service, chain, payer } = all;
  const { header } = await payFrom(chain, payer, await quoted(service, drawing()));
  const keys: Record<string, string>[] = [
    ...["Bearer live_nobody", "Bearer", "Basic eDp5"].map((authorization) => ({ authorization })),
    { "x-api-key": "live_nobody" },
    { "x-goog-api-key": "live_nobody" },
  ];
  for (const key of keys)
    for (const payment of [undefined, header]) {
      const headers = { ...key, ...(payment !== undefined && { "PAYMENT-SIGNATURE": payment }) };
      expect(await refusalOf(await post(service, drawing(), headers))).toEqual(refusal(noKey));
    }
  await expectMoney(all, service, {});
});

test("with a key the balance pays, also if a payment comes with it", async () => {
  const all = await startPaid();
  const { service, chain, payer } = all;
  const { header } = await payFrom(chain, payer, await quoted(service, drawing()));
  const customer = await service.account("1.00");
  const response = await customer.post("/v1/images/generations", drawing(), {
    headers: { "PAYMENT-SIGNATURE": header },
  });
  expect(await answerOf(response)).toMatchObject({ status: 200, costUsd: "0.04", receipt: undefined });
  await expectUntouched(service, customer, "0.96");
  await expectMoney(all, service, {});
});

test("text calls and uploads get no quote: they need a key", async () => {
  const { service } = await startPaid();
  const calls: [string, object][] = [
    ["/v1/chat/completions", asking(localModel)],
    ["/v1/embeddings", { model: "local/embeddings", input: "x" }],
    ["/v1/responses", { model: localModel, input: "x" }],
    ["/v1/uploads", {}],
  ];
  for (const [path, body] of calls)
    expect(await refusalOf(await post(service, body, {}, path))).toEqual(refusal(noKey));
  const native = await post(service, { ...asking(localModel), max_tokens: 5 }, {}, "/v1/messages");
  expect([native.status, native.headers.has("PAYMENT-REQUIRED")]).toEqual([401, false]);
});

test("with payments switched off a call without a key is 401", async () => {
  const { service } = await startPaid({ X402_PAY_TO: "" });
  expect(await refusalOf(await post(service, drawing()))).toEqual(refusal(noKey));
});

test("requests without a key are limited by address", async () => {
  const { service } = await startPaid({ X402_REQUESTS_PER_MINUTE: "2" });
  const customer = await service.account("1.00");
  for (const _ of "12") await quoted(service, drawing());
  // Anyone can send this header.
  const refused = await post(service, drawing(), { "x-forwarded-for": "198.51.100.1" });
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(await answerOf(refused)).toMatchObject({ status: 429, code: "rate_limit_exceeded" });
  expect(await answerOf(customer.post("/v1/images/generations", drawing()))).toMatchObject({ status: 200 });
});

test("behind trusted proxies the limit is that of the address which they name", async () => {
  const { service } = await startPaid({ X402_REQUESTS_PER_MINUTE: "2", TRUSTED_PROXIES: "127.0.0.1, ::1,10.0.0.0/8" });
  const statuses = async (...addresses: string[]) => {
    const found = [];
    for (const each of addresses) found.push((await post(service, drawing(), { "x-forwarded-for": each })).status);
    return found;
  };
  expect(await statuses(...Array<string>(3).fill("198.51.100.1"))).toEqual([402, 402, 429]);
  expect(await statuses("198.51.100.2", "203.0.113.1, 198.51.100.1", "198.51.100.2, 10.1.2.3")).toEqual([
    402, 429, 402,
  ]);
  expect(await statuses("198.51.100.2", "2001:db8::1", "2001:db8::2", "2001:db8::3")).toEqual([429, 402, 402, 429]);
  // An invalid address falls back to the proxy's own.
  expect(await statuses("nonsense", "", "' OR 1=1")).toEqual([402, 402, 429]);
});
