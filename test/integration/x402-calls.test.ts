import { expect, test } from "vitest";
import { fileAt, pngOf, uploaded } from "../support/generation-setup.ts";
import { mockMp4, mockPng } from "../support/mock-openai-media.ts";
import {
  agePayments,
  answerOf,
  buy,
  charges,
  drawing,
  expectMoney,
  filming,
  ledgerOf,
  media,
  payFor,
  post,
  quoted,
  quoteOf,
  startPaid,
} from "../support/x402-setup.ts";

const token = "4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU";

test("an image and a video are bought by the official client, with no account and no key", async () => {
  const all = await startPaid();
  const { service, payer, provider } = all;
  const image = await buy(all, service, drawing());
  expect(image.receipt).toMatchObject({ success: true, payer: payer.address });
  const drawn = await answerOf(image.response);
  expect(drawn).toMatchObject({ status: 200, costUsd: "0.04", replayed: null });
  expect(drawn.requestId).toMatch(/^req_/);
  expect((await fileAt(drawn.urls[0] ?? "")).bytes.equals(mockPng)).toBe(true);

  const video = await buy(all, service, filming(), media);
  const filmed = await answerOf(video.response);
  expect(filmed).toMatchObject({ status: 200, costUsd: "0.20" });
  expect((await fileAt(filmed.urls[0] ?? "")).bytes.equals(mockMp4)).toBe(true);
  expect([image.amount, video.amount]).toEqual([40_000n, 200_000n]);
  await expectMoney(all, service, {
    [image.account]: { paidMicroUsd: 40_000n, costUsd: "0.04" },
    [video.account]: { paidMicroUsd: 200_000n, costUsd: "0.20" },
  });
  expect(provider.requests.filter(({ method }) => method === "POST")).toHaveLength(2);
  expect(await ledgerOf(service, image.account)).toMatchObject([{ kind: "credit" }, { id: drawn.requestId }]);
});

test("a call without a key gets a quote with its resource and list price", async () => {
  const { service } = await startPaid();
  const url = `${service.baseUrl}/v1/images/generations`;
  expect(await quoted(service, drawing({ n: 3 }))).toMatchObject({
    resource: { url, description: "One call of mock/image", mimeType: "application/json" },
    accepts: [{ amount: "120000" }],
  });
});

test("fewer images than were paid for cost less, and the rest stays on the payment's account", async () => {
  const all = await startPaid();
  const { service, provider } = all;
  provider.respond({ body: { created: 1, data: [{ b64_json: mockPng.toString("base64") }] } });
  const { response, account, amount } = await buy(all, service, drawing({ n: 3 }));
  expect(await answerOf(response)).toMatchObject({ status: 200, costUsd: "0.04" });
  expect(amount).toBe(120_000n);
  await expectMoney(all, service, { [account]: { paidMicroUsd: 120_000n, costUsd: "0.04" } });
});

test("the same payment with the same request in any JSON spelling returns the stored answer", async () => {
  const all = await startPaid();
  const { service, provider } = all;
  const { headers, account } = await payFor(all, service, drawing());
  const first = await answerOf(post(service, drawing(), headers));
  expect(first).toMatchObject({ status: 200, replayed: null });
  const spelled = '{ "prompt": "\\u0041 fox",\n "model": "mock/image" }';
  for (const body of [drawing(), spelled]) {
    const again = await answerOf(post(service, body, headers));
    expect(again).toEqual({ ...first, replayed: "true" });
  }
  expect(provider.requests).toHaveLength(1);
  await expectMoney(all, service, { [account]: { paidMicroUsd: 40_000n, costUsd: "0.04" } });
});

test("a failed call charges nothing, and the payment can be used for the same request again", async () => {
  const all = await startPaid();
  const { service, provider, chain } = all;
  const { headers, account } = await payFor(all, service, drawing());
  provider.respond({
    status: 400,
    body: { error: { message: "unsafe", type: "invalid_request_error", param: "prompt" } },
  });
  const failed = await answerOf(post(service, drawing(), headers));
  expect(failed).toMatchObject({ status: 400, param: "prompt", receipt: { success: true }, costUsd: null });
  await expectMoney(all, service, { [account]: { paidMicroUsd: 40_000n, costUsd: "0.00" } });
  const retried = await answerOf(post(service, drawing(), headers));
  expect(retried).toMatchObject({ status: 200, costUsd: "0.04", receipt: failed.receipt });
  expect(await answerOf(post(service, drawing(), headers))).toEqual({ ...retried, replayed: "true" });
  await expectMoney(all, service, { [account]: { paidMicroUsd: 40_000n, costUsd: "0.04" } });
  expect(chain.calls["sendTransaction"]).toBe(1);
});

test("a payment that is a day old returns the stored answer, but starts nothing new", async () => {
  const all = await startPaid();
  const { service, provider, stores } = all;
  const used = await payFor(all, service, drawing());
  const first = await answerOf(post(service, drawing(), used.headers));
  const unused = await payFor(all, service, drawing({ prompt: "A dog" }));
  provider.respond({ status: 400, body: { error: { message: "unsafe", type: "invalid_request_error" } } });
  expect(await answerOf(post(service, drawing({ prompt: "A dog" }), unused.headers))).toMatchObject({ status: 400 });
  await agePayments(stores, 24 * 3_600_000);
  expect(await answerOf(post(service, drawing(), used.headers))).toEqual({ ...first, replayed: "true" });
  expect((await quoteOf(await post(service, drawing({ prompt: "A dog" }), unused.headers))).error).toBe(
    "payment_expired",
  );
  expect(provider.requests).toHaveLength(2);
});

test("a payment for another request gets a new quote, and nothing is taken", async () => {
  const all = await startPaid();
  const { service, provider } = all;
  const { headers, account } = await payFor(all, service, drawing());
  const others: [unknown, string?][] = [
    [drawing({ prompt: "A dog" })],
    [drawing({ n: 2 })],
    [drawing({ user: "me" })],
    [filming(), media],
  ];
  for (const [body, path] of others) {
    const response = await post(service, body, headers, path);
    const { receipt } = await answerOf(response.clone());
    expect(receipt).toMatchObject({ success: false, errorReason: "quote_for_another_request" });
    expect((await quoteOf(response)).error).toBe("quote_for_another_request");
  }
  expect(await answerOf(post(service, drawing(), headers))).toMatchObject({ status: 200 });
  expect((await quoteOf(await post(service, drawing({ n: 2 }), headers))).error).toBe("quote_for_another_request");
  expect(provider.requests).toHaveLength(1);
  await expectMoney(all, service, { [account]: { paidMicroUsd: 40_000n, costUsd: "0.04" } });
});

test("a caller chooses the token to buy back among the eligible mints", async () => {
  const own = "7vfCXTUXx5WJV5JADk17DUJ4ksgau7utNKj4b963voxs";
  const env = { BUYBACK_BPS: "1000", BUYBACK_TOKEN: own, BUYBACK_TOKENS: token };
  const all = await startPaid(env);
  const { service } = all;
  const { response, account } = await buy(all, service, drawing({ buyback_token: token }));
  expect(await answerOf(response)).toMatchObject({ status: 200 });
  await service.settled();
  const [, entry] = await ledgerOf(service, account);
  const accrued = { amount_usd: "0.004", batch: null };
  expect(entry).toMatchObject({ kind: "usage", amount_usd: "-0.04", buyback: { token, ...accrued } });
  const plain = await buy(all, service, drawing());
  expect(await answerOf(plain.response)).toMatchObject({ status: 200 });
  await service.settled();
  expect((await ledgerOf(service, plain.account))[1]).toMatchObject({ buyback: { token: own, ...accrued } });
  const customer = await service.account("1.00");
  expect(await answerOf(customer.post("/v1/images/generations", drawing({ buyback_token: token })))).toMatchObject({
    status: 400,
    param: "buyback_token",
  });
  expect(await charges(service, customer.id)).toEqual([]);
});

test("a caller without an account cannot use an upload: 404, and no quote", async () => {
  const { service } = await startPaid();
  const customer = await service.account("1.00");
  const id = await uploaded(service, customer, pngOf(1, 1));
  expect(await answerOf(post(service, drawing({ image: [id] })))).toMatchObject({
    status: 404,
    code: "upload_not_found",
  });
});
