import { expect, test } from "vitest";
import { brokenWire } from "../support/money-proxy.ts";
import { payFrom } from "../support/payments-setup.ts";
import { type BadPayment, fromWallet, renamed } from "../support/payments-transactions.ts";
import { startService } from "../support/service.ts";
import { asking, expectUntouched, localModel, type Refusal, refusal, refusalOf } from "../support/service-setup.ts";
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

const refusedPayments: readonly BadPayment[] = [
  ["that names a smaller amount", renamed({ amount: "1" }), "requirements_mismatch"],
  ["from a payer who has too little", fromWallet("0.039999"), "invalid_exact_svm_transaction_simulation_failed"],
];

test("refused payments get their reason and a new quote, which can be paid; nothing is taken", async () => {
  const all = await startPaid();
  const { service, chain, provider } = all;
  let required = await quoted(service, drawing());
  const lamports = chain.lamports(chain.feePayer.address);
  for (const [what, make, reason] of refusedPayments) {
    const response = await post(service, drawing(), { "PAYMENT-SIGNATURE": await make(all, required) });
    const { receipt } = await answerOf(response.clone());
    expect([what, receipt]).toMatchObject([what, { success: false, errorReason: reason }]);
    const again = await quoteOf(response);
    expect(again).toMatchObject({ error: reason, accepts: [{ amount: "40000" }] });
    expect(again.accepts[0]?.extra["memo"]).not.toBe(required.accepts[0]?.extra["memo"]);
    required = again;
  }
  expect(chain.lamports(chain.feePayer.address)).toBe(lamports);
  expect(chain.calls["sendTransaction"]).toBeUndefined();
  expect(provider.requests).toHaveLength(0);
  await expectMoney(all, service, {});
  const { header, memo } = await payFrom(chain, all.payer, required);
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

const noKey = { status: 401, type: "authentication_error", code: "invalid_api_key" };
const invalid = { status: 400, type: "invalid_request_error", code: "invalid_value" };

test("what could not be carried out is refused before any quote, and so is an invalid key, also with a payment", async () => {
  const all = await startPaid();
  const { service, chain, payer } = all;
  const { header } = await payFrom(chain, payer, await quoted(service, drawing()));
  const keys: Record<string, string>[] = [
    ...["Bearer live_nobody", "Bearer", "Basic eDp5"].map((authorization) => ({ authorization })),
    { "x-api-key": "live_nobody" },
    { "x-goog-api-key": "live_nobody" },
  ];
  const missing = { status: 404, type: "not_found_error", code: "model_not_found", param: "model" };
  const refused: readonly [Refusal, object, { path?: string; headers?: Record<string, string> }?][] = [
    [{ ...invalid, param: "n" }, drawing({ n: 9 })],
    [{ ...invalid, param: "input.duration" }, filming({ duration: 99 }), { path: media }],
    [missing, { model: "no/such", prompt: "x" }],
    [{ ...invalid, code: "model_not_supported", param: "model" }, drawing({ model: "mock/video" })],
    [{ ...invalid, param: "buyback_token" }, drawing({ buyback_token: "mint" })],
    [{ ...invalid, param: "payment-signature" }, drawing(), { headers: { "PAYMENT-SIGNATURE": "@@" } }],
    [{ ...invalid, param: "prefer" }, drawing(), { headers: { prefer: "respond-async" } }],
    [noKey, asking(localModel), { path: "/v1/chat/completions" }],
    [noKey, { model: "local/embeddings", input: "x" }, { path: "/v1/embeddings" }],
    [noKey, { model: localModel, input: "x" }, { path: "/v1/responses" }],
    [noKey, {}, { path: "/v1/uploads" }],
    ...keys.flatMap((key): [Refusal, object, { headers: Record<string, string> }][] => [
      [noKey, drawing(), { headers: key }],
      [noKey, drawing(), { headers: { ...key, "PAYMENT-SIGNATURE": header } }],
    ]),
  ];
  for (const [expected, body, { path, headers } = {}] of refused) {
    const response = await post(service, body, headers, path);
    expect(response.headers.has("PAYMENT-REQUIRED")).toBe(false);
    expect(await refusalOf(response)).toEqual(refusal(expected));
  }
  const native = await post(service, { ...asking(localModel), max_tokens: 5 }, {}, "/v1/messages");
  expect([native.status, native.headers.has("PAYMENT-REQUIRED")]).toEqual([401, false]);
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
  // Some proxies name the port as well.
  expect(await statuses("198.51.100.1:443", "198.51.100.7:1", "198.51.100.7:2", "198.51.100.7:3")).toEqual([
    429, 402, 402, 429,
  ]);
  expect(await statuses("[2001:db8::1]:443", "[2001:db8:0:9::1]:443")).toEqual([429, 402]);
  // An invalid address falls back to the proxy's own.
  expect(await statuses("nonsense", "", "' OR 1=1")).toEqual([402, 402, 429]);
});
