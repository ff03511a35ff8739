import { expect, test } from "vitest";
import { holdCommands, posts } from "../support/chaos-generation-setup.ts";
import { lost, never } from "../support/chaos-setup.ts";
import { startPair } from "../support/chaos-x402-setup.ts";
import { payFrom } from "../support/payments-setup.ts";
import { eventually } from "../support/service.ts";
import {
  answerOf,
  drawing,
  expectMoney,
  filming,
  images,
  ledgerOf,
  media,
  paidOnce,
  payFor,
  post,
  quoteOf,
} from "../support/x402-setup.ts";

test("twenty concurrent uses of one payment on two API processes: one run, one charge", async () => {
  const all = await startPair();
  const { api, client, provider, chain } = all;
  const { headers, account } = await payFor(all, client, drawing());
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, at) => answerOf(post(at % 2 ? client : api.client, drawing(), headers))),
  );
  for (const { status, body, requestId, receipt } of answers)
    expect({ status, body, requestId, receipt }).toEqual({
      status: 200,
      body: answers[0]?.body,
      requestId: answers[0]?.requestId,
      receipt: answers[0]?.receipt,
    });
  expect(answers.filter(({ replayed }) => replayed === null)).toHaveLength(1);
  expect(posts(provider)).toHaveLength(1);
  expect(chain.calls["sendTransaction"]).toBe(1);
  await expectMoney(all, client, { [account]: paidOnce });
});

test("an API killed between claim and send: nothing was taken, and the quote can be paid again", async () => {
  const all = await startPair();
  const { api, client, chain, payer, provider, quotes } = all;
  const { headers, memo } = await payFor(all, client, drawing());
  chain.faults.next("simulateTransaction", { after: never });
  const connectionLost = lost(post(api.client, drawing(), headers));
  await eventually(() => (chain.calls["simulateTransaction"] ?? 0) === 1);
  expect(await quotes.state(memo)).toBe("settling");
  api.kill("SIGKILL");
  expect(await connectionLost).toBe(true);
  await quotes.endClaim(memo);
  const again = post(client, drawing(), headers);
  await eventually(async () => (await quotes.state(memo)) === "unknown");
  // Until now the payment might have been in transit; from here on no earlier signature can land.
  chain.advance(400);
  const required = await quoteOf(await again);
  expect(required.error).toBe("invalid_exact_svm_transaction_simulation_failed");
  expect(chain.calls["sendTransaction"]).toBeUndefined();
  await expectMoney(all, client, {});
  const paid = await payFrom(chain, payer, required);
  expect(await answerOf(post(client, drawing(), { "PAYMENT-SIGNATURE": paid.header }))).toMatchObject({ status: 200 });
  await expectMoney(all, client, { [`x402:${paid.memo}`]: paidOnce });
  expect(posts(provider)).toHaveLength(1);
});

test("an API killed between send and confirmation: on another API the payment is found on chain, and the call runs once", async () => {
  const all = await startPair();
  const { api, client, chain, provider, quotes } = all;
  const { headers, memo, account } = await payFor(all, client, drawing());
  chain.faults.next("getSignatureStatuses", { after: never });
  const connectionLost = lost(post(api.client, drawing(), headers));
  await eventually(() => (chain.calls["getSignatureStatuses"] ?? 0) === 1);
  api.kill("SIGKILL");
  expect(await connectionLost).toBe(true);
  expect(await chain.balance(chain.payTo)).toBe(40_000n);
  await quotes.endClaim(memo);
  const answer = await answerOf(post(client, drawing(), headers));
  expect(answer).toMatchObject({ status: 200, replayed: null, costUsd: "0.04", receipt: { success: true } });
  expect(await answerOf(post(client, drawing(), headers))).toEqual({ ...answer, replayed: "true" });
  expect(posts(provider)).toHaveLength(1);
  expect(chain.calls["sendTransaction"]).toBe(1);
  await expectMoney(all, client, { [account]: paidOnce });
});

test("an API killed between credit and idempotency key: on another API the call runs, and is paid once", async () => {
  let reached: Promise<void> | undefined;
  const all = await startPair({
    stores: async (stores) => {
      const held = await holdCommands(stores, ({ insert }) => insert === "idempotency");
      reached = held.reached;
      return held.stores;
    },
  });
  const { api, client, chain, provider } = all;
  const { headers, account } = await payFor(all, client, drawing());
  const connectionLost = lost(post(api.client, drawing(), headers));
  await reached;
  api.kill("SIGKILL");
  expect(await connectionLost).toBe(true);
  expect(await ledgerOf(client, account)).toMatchObject([{ kind: "credit", amount_usd: "0.04" }]);
  expect(await answerOf(post(client, drawing(), headers))).toMatchObject({ status: 200, costUsd: "0.04" });
  expect(posts(provider)).toHaveLength(1);
  expect(chain.calls["sendTransaction"]).toBe(1);
  await expectMoney(all, client, { [account]: paidOnce });
});

test("an API killed while calls run: they continue, and another API returns their answers", async () => {
  const all = await startPair();
  const { api, client, provider } = all;
  const filmPaid = { paidMicroUsd: 200_000n, costUsd: "0.20" };
  const calls = [
    { path: images, body: drawing(), paid: paidOnce, ...(await payFor(all, client, drawing())) },
    { path: media, body: filming(), paid: filmPaid, ...(await payFor(all, client, filming(), media)) },
  ];
  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeHeaders: gate.promise }, { beforeHeaders: gate.promise });
  const connectionsLost = calls.map(({ path, body, headers }) => lost(post(api.client, body, headers, path)));
  const asked = [await provider.request(0), await provider.request(1)];
  api.kill("SIGKILL");
  expect(await Promise.all(connectionsLost)).toEqual([true, true]);
  await api.leaseEnded();
  const ask = () => Promise.all(calls.map(({ path, body, headers }) => answerOf(post(client, body, headers, path))));
  const joined = ask();
  gate.resolve();
  const answers = await joined;
  const expected = { status: 200, replayed: "true", receipt: { success: true } };
  expect(answers).toMatchObject(calls.map(({ paid: { costUsd } }) => ({ ...expected, costUsd })));
  expect(asked.map(({ aborted }) => aborted)).toEqual([false, false]);
  expect(await ask()).toEqual(answers);
  expect(posts(provider)).toHaveLength(2);
  await expectMoney(all, client, Object.fromEntries(calls.map(({ account, paid }) => [account, paid])));
});

test("no worker: no call gets a quote, and no payment for an earlier quote is accepted", async () => {
  const all = await startPair();
  const { client, worker, chain } = all;
  const first = await payFor(all, client, drawing());
  const made = await answerOf(post(client, drawing(), first.headers));
  const { headers } = await payFor(all, client, drawing({ prompt: "A dog" }));
  worker.kill("SIGTERM");
  await worker.exited;
  const ask = () => post(client, drawing({ prompt: "A dog" }));
  await eventually(async () => (await ask()).status === 503);
  expect(await answerOf(post(client, drawing({ prompt: "A dog" }), headers))).toMatchObject({
    status: 503,
    code: "no_capacity",
    receipt: undefined,
  });
  expect(chain.calls["sendTransaction"]).toBe(1);
  // The paid output is delivered all the same.
  expect(await answerOf(post(client, drawing(), first.headers))).toEqual({ ...made, replayed: "true" });
  await expectMoney(all, client, { [first.account]: paidOnce });
});
