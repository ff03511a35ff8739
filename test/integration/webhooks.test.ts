import { expect, test } from "vitest";
import { runDemo } from "../support/run-demo.ts";
import { serviceOfFile } from "../support/service-setup.ts";
import { startReceiver, status, verified, webhookEnvironment } from "../support/webhook-receiver.ts";
import { webhookAccount } from "../support/webhooks-setup.ts";

const running = serviceOfFile(await webhookEnvironment());

test("the end of a job reaches the account's endpoints and the request's callback, signed for both libraries", async () => {
  const customer = await webhookAccount(running.service);
  const [endpointReceiver, callbackReceiver] = [await startReceiver(), await startReceiver()];
  const { secret } = await customer.createEndpoint(`${endpointReceiver.url}/hook`, { headers: { "X-Team": "a" } });
  const { secret: ofCallbacks } = await customer.request<{ secret: string }>("POST", "/default/rotate-secret", {});
  const id = await customer.submitJob({ "x-xm-webhook": `${callbackReceiver.url}/once` });
  const sent = await endpointReceiver.webhook(0);
  const event = await verified(sent, secret);
  expect(event).toMatchObject({
    object: "event",
    type: "job.completed",
    data: { id, object: "job", status: "completed" },
  });
  expect(sent.path).toBe("/hook");
  expect(sent.headers).toMatchObject({
    "content-type": "application/json",
    "x-xm-event": "job.completed",
    "x-xm-attempt": "1",
    "x-team": "a",
  });
  const callback = await callbackReceiver.webhook(0);
  expect(await verified(callback, ofCallbacks)).toEqual(event);
  expect(callback.id).not.toBe(sent.id);
  expect(callback.headers["x-team"]).toBeUndefined();
  const states = async () =>
    Object.fromEntries((await customer.deliveries()).map(({ webhook_id, status }) => [webhook_id, status]));
  await expect.poll(states).toEqual({ [sent.id]: "delivered", [callback.id]: "delivered" });
});

test("after a rotation both secrets verify, and after the grace only the new one", async () => {
  const customer = await webhookAccount(running.service);
  const receiver = await startReceiver();
  const { id, secret: first } = await customer.createEndpoint(receiver.url);
  const { secret: second } = await customer.request<{ secret: string }>("POST", `/endpoints/${id}/rotate-secret`, {});
  await customer.submitJob();
  const sent = await receiver.webhook(0);
  for (const secret of [first, second]) await verified(sent, secret);
  const { secret: third } = await customer.request<{ secret: string }>("POST", `/endpoints/${id}/rotate-secret`, {
    grace_seconds: 0,
  });
  await customer.submitJob();
  const next = await receiver.webhook(1);
  await verified(next, third);
  for (const secret of [first, second]) await expect(verified(next, secret)).rejects.toThrow("No matching signature");
});

test("a test is sent once by a worker, whatever state the endpoint is in, and its answer is shown", async () => {
  const customer = await webhookAccount(running.service);
  const receiver = await startReceiver();
  const { id, secret } = await customer.createEndpoint(receiver.url, { disabled: true });
  receiver.answerNext(status(418), status(200));
  const failed = await customer.request("POST", `/endpoints/${id}/test`, {});
  expect(failed).toMatchObject({
    type: "webhook.test",
    status: "failed",
    attempts: [{ status_code: 418, error: "status 418", response_snippet: "status 418" }],
    next_attempt_at: null,
  });
  const passed = await customer.request("POST", `/endpoints/${id}/test`, {});
  expect(passed).toMatchObject({ status: "delivered", attempts: [{ status_code: 200, error: null }] });
  expect(await verified(await receiver.webhook(1), secret)).toMatchObject({ type: "webhook.test", data: { id } });
  expect(receiver.received).toHaveLength(2);
});

test.each([
  "http://10.0.0.1/",
  "https://169.254.169.254/latest",
  "https://[::ffff:10.0.0.1]/",
  "https://0xa000001/",
  "https://localhost.localdomain/",
  "http://example.com/",
  "https://user@example.com/",
])("%s is refused as an endpoint and as a callback", async (url) => {
  const customer = await webhookAccount(running.service);
  const created = await customer.ask("POST", "/webhooks/endpoints", { url, events: ["*"] });
  expect([created.status, created.body.error.code, created.body.error.param]).toEqual([
    400,
    "invalid_webhook_url",
    "url",
  ]);
  await customer.request("POST", "/default/rotate-secret", {});
  const call = await customer.post(
    "/v1/chat/completions",
    { model: "local/chat", messages: [{ role: "user", content: "Hello" }] },
    { headers: { prefer: "respond-async", "x-xm-webhook": url } },
  );
  expect(await call.json()).toMatchObject({ error: { code: "invalid_webhook_url", param: "x-xm-webhook" } });
});

test("npm run demo:async follows its jobs by polling and by webhooks, and leaves no endpoint", async () => {
  const { baseUrl } = running.service;
  const customer = await webhookAccount(running.service);
  const stdout = await runDemo("async", { baseUrl, customer, args: ["A lighthouse"] });
  for (const name of ["image", "film"]) {
    const [, id = "none"] = new RegExp(`^${name} +(job_\\w+)  completed, 0.0[13] USD$`, "m").exec(stdout) ?? [];
    expect(stdout).toMatch(new RegExp(`^${name} +${id}  ${baseUrl}/media/`, "m"));
    expect(stdout).toContain(`webhook  ${id}  job.completed, with a valid signature`);
  }
  expect(await customer.request("GET", "/endpoints")).toMatchObject({ data: [] });
});
