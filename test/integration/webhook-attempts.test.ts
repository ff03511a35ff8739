import { expect, onTestFinished, test } from "vitest";
import type { ClaimedDelivery } from "#webhooks";
import { createReceiverAddresses } from "../../shared/platform/receiver-addresses.ts";
import { createSecrets } from "../../shared/secrets/index.ts";
import { createSafePost } from "../../workers/providers/http/safe-fetch.ts";
import { attemptDelivery } from "../../workers/webhooks/attempt.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { startReceiver, status, webhookEnvironment } from "../support/webhook-receiver.ts";

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

async function start(random = 0.5) {
  const env = await webhookEnvironment();
  const secrets = createSecrets(env);
  const clock = createManualClock();
  const safePost = createSafePost({ clock, receivers: createReceiverAddresses(env) });
  onTestFinished(() => safePost.close());
  const receiver = await startReceiver();
  const sealed = await secrets.seal("acct_1", "we_1", secret);
  const own = JSON.stringify({
    "X-Team": "a",
    authorization: "Bearer b",
    "Webhook-Id": "forged",
    "User-Agent": "forged",
  });
  const headers = await secrets.seal("acct_1", "we_1", own);
  const delivery: ClaimedDelivery = {
    account: "acct_1",
    receiver: "we_1",
    event: "evt_1",
    id: "wd_1",
    claim: "c",
    endpoint: "we_1",
    url: `${receiver.url}/hook?a=b`,
    type: "job.completed",
    attempt: 1,
    isTest: false,
    webhookId: "whm_1",
    body: '{"id":"evt_1"}',
    sealedAs: "we_1",
    secrets: [sealed],
    headers,
  };
  const attempt = (change: Partial<ClaimedDelivery> = {}) =>
    attemptDelivery({ safePost, secrets, clock, random: () => random }, { ...delivery, ...change });
  const pauseOf = ({ outcome }: Awaited<ReturnType<typeof attempt>>) =>
    outcome.kind === "retry" ? (outcome.at.getTime() - clock.now()) / 1_000 : outcome.kind;
  return { receiver, attempt, clock, pauseOf };
}

test("an attempt has the event's body, its headers and the customer's, which replace none of ours", async () => {
  const { receiver, attempt, clock } = await start();
  const { attempt: made, outcome } = await attempt({ attempt: 3 });
  expect(outcome).toEqual({ kind: "delivered" });
  expect(made).toMatchObject({ at: new Date(clock.now()), statusCode: 204, responseSnippet: "" });
  expect(made.error).toBeUndefined();
  const [{ headers, ...webhook }] = receiver.received as [(typeof receiver.received)[number]];
  expect(webhook).toMatchObject({ path: "/hook?a=b", body: '{"id":"evt_1"}' });
  const { host: _host, "webhook-signature": signature, ...others } = headers;
  expect(signature).toMatch(/^v1,[\w+/]{43}=$/);
  expect(others).toEqual({
    connection: "keep-alive",
    "content-length": "14",
    "content-type": "application/json",
    "accept-encoding": "identity",
    "user-agent": "inference-service-webhooks/1.0",
    "webhook-id": "whm_1",
    "webhook-timestamp": String(clock.now() / 1_000),
    "x-xm-event": "job.completed",
    "x-xm-attempt": "3",
    "x-team": "a",
    authorization: "Bearer b",
  });
});

test.each([
  ["200", status(200), "delivered", undefined],
  ["299", status(299), "delivered", undefined],
  ["301", status(301, { location: "http://169.254.169.254/" }), 5, "status 301"],
  ["404", status(404), 5, "status 404"],
  ["410", status(410), "gone", "status 410"],
  ["500", status(500), 5, "status 500"],
  ["429 that asks for an hour", status(429, { "retry-after": "3600" }), 3_600, "status 429"],
  ["503 that asks for less than the schedule", status(503, { "retry-after": "1" }), 5, "status 503"],
  ["503 that asks for a week", status(503, { "retry-after": "604800" }), 86_400, "status 503"],
  ["503 that asks for nonsense", status(503, { "retry-after": "soon" }), 5, "status 503"],
  [
    "503 that names a time",
    status(503, { "retry-after": new Date(Date.UTC(2026, 0, 1, 0, 10)).toUTCString() }),
    600,
    "status 503",
  ],
])("%s", async (_, answer, pause, error) => {
  const { receiver, attempt, pauseOf } = await start();
  receiver.answerNext(answer);
  const made = await attempt();
  expect([pauseOf(made), made.attempt.error]).toEqual([pause, error]);
});

test.each([
  [0, [4, 240, 1_440, 5_760, 14_400, 28_800, 40_320, 57_600, 69_120, "failed"]],
  [0.5, [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400, "failed"]],
  [1 - 1e-9, [6, 360, 2_160, 8_640, 21_600, 43_200, 60_480, 86_400, 103_680, "failed"]],
])("ten attempts, with a jitter of a fifth (%f)", async (random, pauses) => {
  const { receiver, attempt, pauseOf } = await start(random);
  receiver.answerAlways(status(500));
  const made = [];
  for (let n = 1; n <= 10; n++) made.push(pauseOf(await attempt({ attempt: n })));
  expect(made.map((pause) => (typeof pause === "number" ? Math.round(pause) : pause))).toEqual(pauses);
  expect(pauseOf(await attempt({ isTest: true }))).toBe("failed");
});

test("of an answer a kilobyte is kept, and its headers that matter", async () => {
  const { receiver, attempt } = await start();
  receiver.answerNext((response) => {
    const headers = { "content-type": `text/html; a=${"b".repeat(300)}`, "retry-after": "7", "set-cookie": "a=b" };
    response.writeHead(500, headers).end("x".repeat(100_000));
  });
  const { attempt: made } = await attempt();
  expect(made).toEqual({
    at: made.at,
    durationMs: made.durationMs,
    error: "status 500",
    statusCode: 500,
    responseSnippet: "x".repeat(1_024),
    contentType: `text/html; a=${"b".repeat(187)}`,
    retryAfter: "7",
  });
});

test("what went wrong is said without addresses", async () => {
  const { attempt, receiver, clock } = await start();
  const errorAt = async (url: string) => (await attempt({ url })).attempt.error;
  expect(await errorAt("http://127.0.0.1:1/")).toBe("connection refused");
  expect(await errorAt("https://10.0.0.1/")).toBe("the address does not have a public host");
  expect(await errorAt(receiver.url.replace("http:", "https:"))).toMatch(/^TLS: |connection/);
  receiver.answerNext((response) => void response.destroy());
  expect(await errorAt(receiver.url)).toBe("connection closed without an answer");
  const silent = Promise.withResolvers<void>();
  receiver.answerNext(() => silent.resolve());
  const late = errorAt(receiver.url);
  await silent.promise;
  clock.advance(15_000);
  expect(await late).toBe("no answer within 15 seconds");
});

test("a delivery without its body or a secret fails for good, and secrets that do not open are no attempt", async () => {
  const { attempt, pauseOf, receiver } = await start();
  const deleted = await attempt({ body: undefined });
  const unsigned = await attempt({ secrets: [] });
  expect([deleted.attempt.error, pauseOf(deleted)]).toEqual(["the body was deleted", "failed"]);
  expect([unsigned.attempt.error, pauseOf(unsigned)]).toEqual(["there is no secret", "failed"]);
  await expect(attempt({ account: "acct_2" })).rejects.toThrow("The secret of we_1 is damaged");
  expect(receiver.received).toEqual([]);
});
