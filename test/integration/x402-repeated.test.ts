import { expect, test } from "vitest";
import { posts } from "../support/chaos-generation-setup.ts";
import { heldWire, lost, ready } from "../support/chaos-setup.ts";
import { eventually, startService } from "../support/service.ts";
import {
  answerOf,
  drawing,
  expectMoney,
  images,
  paidOnce,
  payFor,
  post,
  startPaid,
  startWorld,
} from "../support/x402-setup.ts";

test("a caller who disconnects during settlement: the call runs, and the same payment returns its answer", async () => {
  const all = await startPaid();
  const { service, chain, provider } = all;
  const { headers, account } = await payFor(all, service, drawing());
  const gate = Promise.withResolvers<void>();
  chain.faults.next("sendTransaction", { after: gate.promise });
  const leaving = new AbortController();
  const connectionLost = lost(
    fetch(`${service.baseUrl}${images}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(drawing()),
      signal: leaving.signal,
    }),
  );
  await eventually(() => chain.calls["sendTransaction"] === 1);
  leaving.abort();
  expect(await connectionLost).toBe(true);
  gate.resolve();
  await eventually(() => posts(provider).length === 1);
  expect(await answerOf(post(service, drawing(), headers))).toMatchObject({ status: 200, replayed: "true" });
  expect(posts(provider)).toHaveLength(1);
  await expectMoney(all, service, { [account]: paidOnce });
});

test("settled, and then not admitted: 503, and the repeated payment runs the call", async () => {
  const world = await startWorld({ oneServer: true });
  const { stores, env, chain, provider } = world;
  const wire = await heldWire(stores.REDIS_URL);
  const service = await startService({ ...stores, REDIS_URL: wire.address }, { env });
  const all = { ...world, service };
  const { headers, account } = await payFor(all, service, drawing());
  const gate = Promise.withResolvers<void>();
  chain.faults.next("sendTransaction", { after: gate.promise });
  const asked = answerOf(post(service, drawing(), headers));
  await eventually(() => chain.calls["sendTransaction"] === 1);
  wire.hold();
  gate.resolve();
  expect(await asked).toMatchObject({ status: 503, code: "no_capacity", receipt: { success: true } });
  wire.reconnect();
  await ready(service);
  expect(await answerOf(post(service, drawing(), headers))).toMatchObject({ status: 200, replayed: null });
  expect(posts(provider)).toHaveLength(1);
  expect(chain.calls["sendTransaction"]).toBe(1);
  await expectMoney(all, service, { [account]: paidOnce });
});

test("a failed call that is repeated concurrently runs once more", async () => {
  const all = await startPaid();
  const { service, provider } = all;
  const { headers, account } = await payFor(all, service, drawing());
  provider.respond({
    status: 400,
    body: { error: { message: "unsafe", type: "invalid_request_error", param: "prompt" } },
  });
  expect(await answerOf(post(service, drawing(), headers))).toMatchObject({ status: 400, receipt: { success: true } });
  const answers = await Promise.all(Array.from({ length: 5 }, () => answerOf(post(service, drawing(), headers))));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  expect(answers.filter(({ replayed }) => replayed === null)).toHaveLength(1);
  expect(posts(provider)).toHaveLength(2);
  await expectMoney(all, service, { [account]: paidOnce });
});
