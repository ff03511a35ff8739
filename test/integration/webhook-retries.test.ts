import { expect, test } from "vitest";
import { dayMs } from "../../shared/platform/clock.ts";
import { serviceOfFile } from "../support/service-setup.ts";
import { startReceiver, status, webhookEnvironment } from "../support/webhook-receiver.ts";
import { webhookAccount } from "../support/webhooks-setup.ts";

/** Time is moved here, so signatures are verified elsewhere. */
const running = serviceOfFile(await webhookEnvironment());

test("a failed attempt is repeated by the schedule, under the same id and with a new signature", async () => {
  const { service, advance } = running;
  const customer = await webhookAccount(service);
  const receiver = await startReceiver();
  receiver.answerNext(status(500), status(301, { location: "http://10.0.0.1/" }));
  await customer.createEndpoint(receiver.url);
  await customer.submitJob();
  const first = await receiver.webhook(0);
  await customer.delivery(({ status }) => status === "retrying");
  advance(6_001);
  const second = await receiver.webhook(1);
  await customer.delivery(({ attempts }) => attempts.length === 2);
  advance(6 * 60_000 + 1);
  const third = await receiver.webhook(2);
  const delivered = await customer.delivery(({ status }) => status === "delivered");
  expect(delivered).toMatchObject({ webhook_id: first.id, next_attempt_at: null });
  expect(delivered.attempts.map(({ status_code }) => status_code)).toEqual([500, 301, 204]);
  expect([second, third].map(({ id, body }) => [id, body])).toEqual([
    [first.id, first.body],
    [first.id, first.body],
  ]);
  expect([first, second, third].map(({ headers }) => headers["x-xm-attempt"])).toEqual(["1", "2", "3"]);
  expect(new Set([first, second, third].map(({ headers }) => headers["webhook-signature"])).size).toBe(3);
});

test("Retry-After delays the next attempt", async () => {
  const { service, advance } = running;
  const customer = await webhookAccount(service);
  const receiver = await startReceiver();
  receiver.answerNext(status(503, { "retry-after": "3600" }));
  await customer.createEndpoint(receiver.url);
  await customer.submitJob();
  const { headers } = await receiver.webhook(0);
  const { next_attempt_at } = await customer.delivery(({ status }) => status === "retrying");
  expect(Number(next_attempt_at) - Number(headers["webhook-timestamp"])).toBeGreaterThanOrEqual(3_600);
  advance(3_601_000);
  await receiver.webhook(1);
});

test("410 disables the endpoint; events are skipped until it is enabled, and can be recovered and redelivered", async () => {
  const { service, advance } = running;
  const customer = await webhookAccount(service);
  const receiver = await startReceiver();
  receiver.answerNext(status(410));
  const { id } = await customer.createEndpoint(receiver.url);
  await customer.submitJob();
  const gone = await customer.delivery(({ status }) => status === "failed");
  await expect.poll(async () => (await customer.endpoint(id)).disabled_reason).toBe("gone");
  const since = Math.floor(Date.now() / 1_000) - 60;
  const skippedJob = await customer.submitJob();
  await expect
    .poll(async () => (await customer.deliveries()).find(({ object_id }) => object_id === skippedJob)?.status)
    .toBe("skipped");
  expect(receiver.received).toHaveLength(1);
  await customer.request("PATCH", `/endpoints/${id}`, { disabled: false });
  expect(await customer.request("POST", `/endpoints/${id}/recover`, { since })).toMatchObject({ count: 2 });
  await expect
    .poll(async () => (await customer.deliveries()).map(({ status }) => status))
    .toEqual(["delivered", "delivered"]);
  expect(receiver.received.filter(({ id }) => id === gone.webhook_id)).toHaveLength(2);
  advance(1_000);
  await customer.request("POST", `/deliveries/${gone.id}/redeliver`, {});
  const again = await receiver.webhook(3);
  expect([again.id, again.headers["x-xm-attempt"]]).toEqual([gone.webhook_id, "1"]);
  expect(again.headers["webhook-timestamp"]).not.toBe(receiver.received[0]?.headers["webhook-timestamp"]);
});

test("an endpoint without a success for five days and twenty failures is disabled", async () => {
  const { service, advance } = running;
  const customer = await webhookAccount(service);
  const receiver = await startReceiver();
  receiver.answerAlways(status(500));
  const { id } = await customer.createEndpoint(receiver.url);
  for (let n = 0; n < 20; n++) await customer.submitJob();
  await expect.poll(async () => (await customer.deliveries("&status=retrying")).length, { interval: 200 }).toBe(20);
  const tried = receiver.received.length;
  expect(await customer.endpoint(id)).toMatchObject({ disabled_reason: null });
  advance(5 * dayMs);
  await expect.poll(async () => (await customer.endpoint(id)).disabled_reason).toBe("failing");
  await expect.poll(async () => (await customer.deliveries("&status=skipped")).length).toBeGreaterThan(0);
  expect(receiver.received.length).toBeGreaterThan(tried);
});
