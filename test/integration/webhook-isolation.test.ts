import type { ServerResponse } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { type Clock, systemClock } from "#platform/clock";
import { createManualClock } from "../support/manual-clock.ts";
import { ofFile } from "../support/of-file.ts";
import { startWithProvider } from "../support/service-setup.ts";
import { startDeadServer, startReceiver, webhookEnvironment } from "../support/webhook-receiver.ts";
import { webhookAccount } from "../support/webhooks-setup.ts";

/** More than one receiver gets. */
const concurrency = 24;
const attemptMs = 15_000;

/** Neither does an attempt run out of time nor does a retry become due, unless the test moves the time. */
const running = ofFile(
  async (onEnd) => {
    const time = createManualClock(Date.now());
    const after: Clock["after"] = (ms, fire) => (ms === attemptMs ? time : systemClock).after(ms, fire);
    const env = { ...(await webhookEnvironment()), WORKER_CONCURRENCY_WEBHOOKS: String(concurrency) };
    const { service, provider } = await startWithProvider(env, onEnd, { ...systemClock, now: () => time.now(), after });
    onEnd(() => provider.close());
    return { service, advance: (ms: number) => time.advance(ms) };
  },
  () => {},
);
const [accounts, endpointsEach] = [4, 10];

/** `npm run bench:webhooks` measures the same with 1,000 dead receivers. */
test("receivers that never answer leave half of the attempts to others", async () => {
  const { service, advance } = running;
  const dead = await startDeadServer();
  onTestFinished(() => dead.close());
  const customers = await Promise.all(Array.from({ length: accounts }, () => webhookAccount(service)));
  for (const [at, customer] of customers.entries())
    for (let n = 0; n < endpointsEach; n++) await customer.createEndpoint(dead.url(at * endpointsEach + n));
  const good = await webhookAccount(service);
  const receiver = await startReceiver();
  await good.createEndpoint(receiver.url);

  for (const customer of customers) await customer.submitJob();
  await expect.poll(() => dead.open()).toBe(concurrency);
  // An account that has no attempt in flight is next, as soon as one of them times out.
  await good.submitJob();
  const failing = async () =>
    (await Promise.all(customers.map((customer) => customer.deliveries("&status=retrying")))).flat().length;
  await expect
    .poll(
      async () => {
        advance(attemptMs);
        return failing();
      },
      { interval: 500 },
    )
    .toBe(accounts * endpointsEach);
  await receiver.webhook(0);

  for (const customer of customers) await customer.submitJob();
  await expect.poll(() => dead.open()).toBe(concurrency / 2);
  for (let n = 1; n <= 10; n++) {
    await good.submitJob();
    await receiver.webhook(n);
    expect(dead.open()).toBe(concurrency / 2);
  }
});

test("a receiver gets one attempt at a time until one succeeds, then ten, and one again after a failure", async () => {
  const { service } = running;
  const customer = await webhookAccount(service);
  const receiver = await startReceiver();
  const held: ServerResponse[] = [];
  let most = 0;
  receiver.answerAlways((response) => {
    held.push(response);
    most = Math.max(most, held.length);
  });
  const answer = (code: number) => {
    most = 0;
    for (const response of held.splice(0)) response.writeHead(code).end();
  };
  await customer.createEndpoint(receiver.url);
  for (let n = 0; n < 25; n++) await customer.submitJob();
  const ended = async (count: number) =>
    expect
      .poll(async () => (await customer.deliveries()).filter(({ attempts }) => attempts.length > 0).length)
      .toBe(count);
  await expect.poll(() => held.length).toBe(1);
  answer(200);
  await expect.poll(() => held.length).toBe(10);
  answer(500);
  await ended(11);
  for (let count = 12; count <= 14; count++) {
    await expect.poll(() => held.length).toBe(1);
    expect(most).toBe(1);
    answer(500);
    await ended(count);
  }
  await expect.poll(() => held.length).toBe(1);
  answer(200);
  await expect.poll(() => held.length).toBe(10);
  expect(most).toBe(10);
  answer(200);
});
