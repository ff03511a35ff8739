import { expect, test } from "vitest";
import { eventOf } from "../../api/routes/webhook-events.ts";
import type { AttemptOutcome } from "../../shared/webhooks/index.ts";
import { eventually } from "../support/service.ts";
import { hookUrl, type WebhookBody, webhookOwner, webhooksOfFile } from "../support/webhook-store-setup.ts";

const running = webhooksOfFile({ NATIVE_FORMATS_ANY_MODEL: "true", WORKER_CONCURRENCY_CHAT: "1" }, [
  "enqueue-webhooks",
  "end-detached-calls",
]);

const [minuteMs, dayMs] = [60_000, 86_400_000];
const chat = "/v1/chat/completions";
const asking = (content = "Hello.") => ({ model: "local/chat", messages: [{ role: "user", content }] });
const messagesOf = (deliveries: readonly WebhookBody[]) => deliveries.map(({ type, status }) => [type, status]);

type Owner = Awaited<ReturnType<typeof webhookOwner>>;

const open = () => webhookOwner(running.service);

/** Submits a job. Resolves with its id. */
async function submit({ post }: Owner, body: object = asking(), headers: Record<string, string> = {}, path = chat) {
  const answer = await post(path, body, { headers: { prefer: "respond-async", ...headers } });
  const { id, error } = (await answer.json()) as WebhookBody;
  return { status: answer.status, id, error };
}

const read = async ({ key }: Owner, path: string) =>
  (await (
    await fetch(`${running.service.baseUrl}${path}`, { headers: { authorization: `Bearer ${key}` } })
  ).json()) as WebhookBody;

/** A process that ends a job notes last that all deliveries are recorded. */
const recorded = (id: string) =>
  eventually(async () => {
    const filter = { _id: id.replace("job_", "req_"), endedAt: { $exists: true }, eventDueAt: { $exists: false } };
    return (await running.mongo.db.collection<{ _id: string }>("detachedCalls").findOne(filter)) !== null;
  });

/** Resolves with the polled job and its deliveries. */
async function ended(owner: Owner, id: string, query = "") {
  await recorded(id);
  const job = await read(owner, `/v1/jobs/${id}?wait=30${query}`);
  const deliveries = await owner.deliveries(`object_id=${id}`);
  const bodies = await Promise.all(
    deliveries.map(async (each) => (await owner.ask("GET", `/deliveries/${each.id}`)).body.body ?? "{}"),
  );
  return { job, deliveries, bodies: bodies.map((body) => JSON.parse(body) as Record<string, unknown>) };
}

/** Claims a due delivery of a receiver, and stores the outcome of an attempt. */
async function attempt(
  owner: Owner,
  receiver: string,
  outcome: AttemptOutcome | ((attempt: number) => AttemptOutcome),
) {
  const { sending } = running.webhooks;
  const [claimed] = await sending.claim({ account: owner.account.id, receiver }, 1);
  if (!claimed) return undefined;
  const given = typeof outcome === "function" ? outcome(claimed.attempt) : outcome;
  await sending.storeAttempt(claimed, { at: new Date(running.now()), durationMs: 1, statusCode: 500 }, given);
  return claimed;
}
const retryAt = (ms: number) => ({ kind: "retry", at: new Date(running.now() + ms) }) as const;

test("a response in the background has an event of its own, and none of a job", async () => {
  const owner = await open();
  await owner.create();
  const body = { model: "local/chat", input: "Hello.", background: true };
  const { id } = (await (await owner.post("/v1/responses", body)).json()) as WebhookBody;
  const [delivery, ...others] = await eventually(async () => {
    const found = await owner.deliveries();
    return found.length > 0 && found;
  });
  expect([delivery?.type, others]).toEqual(["response.completed", []]);
  const sent = (await owner.ask("GET", `/deliveries/${delivery?.id}`)).body.body ?? "{}";
  const response = await read(owner, `/v1/responses/${id}`);
  const { model, cost_usd } = (JSON.parse(sent) as { data: WebhookBody }).data;
  expect(JSON.parse(sent)).toMatchObject({
    type: "response.completed",
    data: { id, object: "response", status: response.status, model: response["model"] },
  });
  expect([model, cost_usd]).toEqual(["local/chat", expect.stringMatching(/^0\.\d+$/)]);
});

test("the event of a job has the job as its body, once for each endpoint that subscribes to it", async () => {
  const owner = await open();
  const all = await owner.create();
  const family = await owner.create({ events: ["job.*"], url: hookUrl("b") });
  await owner.create({ events: ["job.failed", "balance.low"], url: hookUrl("c") });
  const { id } = await submit(owner, asking(), { "x-xm-metadata": '{"order":"17"}' });
  const { job, deliveries, bodies } = await ended(owner, id);
  expect(job).toMatchObject({ status: "completed", metadata: { order: "17" } });
  expect(new Set(deliveries.map((each) => each["endpoint_id"]))).toEqual(new Set([all.id, family.id]));
  expect(messagesOf(deliveries)).toEqual([
    ["job.completed", "pending"],
    ["job.completed", "pending"],
  ]);
  const [first, second] = bodies;
  expect(first).toEqual({
    id: expect.stringMatching(/^evt_\w{32}$/),
    object: "event",
    created_at: job["completed_at"],
    type: "job.completed",
    data: job,
  });
  expect(second).toEqual(first);
  expect(eventOf("job.completed").parse(first)).toEqual(first);
  expect(new Set(deliveries.map((each) => each.webhook_id)).size).toBe(2);

  // A process that died after the end of the job, and one that died after the recording.
  const calls = running.mongo.db.collection<{ _id: string }>("detachedCalls");
  await calls.updateOne({ _id: id.replace("job_", "req_") }, { $set: { eventDueAt: new Date(0) } });
  await recorded(id);
  expect(await owner.deliveries(`object_id=${id}`)).toEqual(deliveries);
});

test("each end of a job and of a response in the background has an event of its own", async () => {
  const owner = await open();
  await owner.create();
  const respond = async (input: string, fields: object = {}) => {
    const body = { model: "local/chat", input, background: true, ...fields };
    return ((await (await owner.post("/v1/responses", body)).json()) as WebhookBody).id;
  };
  const jobOf = (id: string) => id.replace("resp_", "job_");
  const eventOfObject = async (id: string) => {
    await recorded(jobOf(id));
    const deliveries = await owner.deliveries(`object_id=${id}`);
    const sent = (await owner.ask("GET", `/deliveries/${deliveries[0]?.id}`)).body.body ?? "{}";
    const { type, data } = JSON.parse(sent) as { type: string; data: WebhookBody };
    expect([deliveries.length, eventOf(type as never).parse(JSON.parse(sent))]).toEqual([1, JSON.parse(sent)]);
    return [type, data.status, data.error?.code];
  };
  const failed = (await submit(owner, asking("error:429"))).id;
  expect(await eventOfObject(failed)).toEqual(["job.failed", "failed", expect.any(String)]);
  expect(await eventOfObject(await respond("error:429"))).toEqual(["response.failed", "failed", expect.any(String)]);
  expect(await eventOfObject(await respond("Count to a hundred.", { max_output_tokens: 1 }))).toEqual([
    "response.incomplete",
    "incomplete",
    undefined,
  ]);

  // The only slot is taken, so the others wait.
  const slow = await submit(owner, asking("slow:60000"));
  await eventually(async () => (await read(owner, `/v1/jobs/${slow.id}`)).status === "in_progress");
  const [cancelled, late] = [await submit(owner), await submit(owner, asking(), { "x-xm-cancel-after": "5" })];
  const response = await respond("Hello.");
  await owner.post(`/v1/jobs/${cancelled.id}/cancel`, undefined);
  await owner.post(`/v1/responses/${response}/cancel`, undefined);
  running.advance(21_000);
  expect(await eventOfObject(cancelled.id)).toEqual(["job.cancelled", "cancelled", "conflict"]);
  expect(await eventOfObject(response)).toEqual(["response.cancelled", "cancelled", "conflict"]);
  expect(await eventOfObject(late.id)).toEqual(["job.expired", "expired", "upstream_timeout"]);
  running.advance(60_000);
  expect(await eventOfObject(slow.id)).toEqual(["job.completed", "completed", undefined]);
});

test("an event is recorded even if the job is deleted at once", async () => {
  const owner = await open();
  await owner.create();
  const { id } = await submit(owner);
  await recorded(id);
  await running.mongo.db
    .collection<{ _id: string }>("detachedCalls")
    .updateOne({ _id: id.replace("job_", "req_") }, { $set: { eventDueAt: new Date(running.now() + dayMs) } });
  await running.mongo.db.collection("webhookDeliveries").deleteMany({ objectId: id });
  const deleted = await fetch(`${running.service.baseUrl}/v1/jobs/${id}`, {
    method: "DELETE",
    headers: { authorization: `Bearer ${owner.key}` },
  });
  expect(deleted.status).toBe(200);
  expect(await owner.deliveries(`object_id=${id}`)).toHaveLength(1);
});

test("an endpoint that wants results gets JSON of limited size in the body", async () => {
  const owner = await open();
  await owner.create({ include_result: true, url: hookUrl("a") });
  await owner.create({ url: hookUrl("b") });
  const text = await ended(owner, (await submit(owner)).id, "&include=result");
  expect(text.job["result"]).toMatchObject({ object: "chat.completion" });
  const withResult = text.bodies.find(({ data }) => (data as WebhookBody)["result"] !== null);
  expect(withResult?.["data"]).toEqual(text.job);
  const without = text.bodies.find((each) => each !== withResult);
  expect(without?.["data"]).toEqual({ ...text.job, result: null });
  const many = {
    model: "local/embeddings",
    input: Array.from({ length: 256 }, (_, n) => `Text ${n}.`),
    dimensions: 1_024,
  };
  const large = await ended(owner, (await submit(owner, many, {}, "/v1/embeddings")).id, "&include=result");
  expect(large.job).toMatchObject({ status: "completed", result: null, result_omitted: true });
  const omitted = large.bodies.map(({ data }) => data).toSorted((a) => ((a as WebhookBody)["result_omitted"] ? 1 : -1));
  expect(omitted).toEqual([{ ...large.job, result_omitted: false }, large.job]);
});

test("a request names a URL or an endpoint, which gets the end of this job alone, and once", async () => {
  const owner = await open();
  const url = hookUrl("callback?order=17");
  const refused = await submit(owner, asking(), { "x-xm-webhook": url });
  expect([refused.status, refused.error]).toMatchObject([400, { code: "invalid_value", param: "x-xm-webhook" }]);
  const made = await owner.ask("POST", "/default/rotate-secret", {});
  expect(made.body).toEqual({
    object: "webhook_secret",
    secret: expect.stringMatching(/^whsec_/),
    secret_hint: expect.any(String),
  });

  const called = await ended(owner, (await submit(owner, asking(), { "x-xm-webhook": url })).id);
  expect(called.deliveries).toMatchObject([{ endpoint_id: null, url, status: "pending" }]);
  const [due] = (await running.webhooks.sending.due(1_000)).filter(({ account }) => account === owner.account.id);
  if (!due) throw new Error("no receiver is due");
  const [claimed] = await running.webhooks.sending.claim(due, 10);
  const [secret] = claimed?.secrets ?? [];
  expect(await running.secrets.open(owner.account.id, claimed?.sealedAs ?? "", secret ?? "")).toBe(made.body.secret);

  // The same URL as a subscribed endpoint, and an endpoint that does not subscribe to it.
  const same = await owner.create({ url });
  const other = await owner.create({ url: hookUrl("other"), events: ["balance.low"] });
  const both = await ended(owner, (await submit(owner, asking(), { "x-xm-webhook": url })).id);
  expect(both.deliveries).toMatchObject([{ endpoint_id: same.id }]);
  const named = await ended(owner, (await submit(owner, asking(), { "x-xm-webhook": other.id })).id);
  expect(new Set(named.deliveries.map((each) => each["endpoint_id"]))).toEqual(new Set([same.id, other.id]));
});

test.for([
  ["without Prefer", { prefer: "" }, hookUrl("a"), "invalid_value"],
  ["an address inside", {}, "https://10.0.0.1/", "invalid_webhook_url"],
  ["no URL", {}, "nowhere", "invalid_webhook_url"],
  ["another account's endpoint", {}, "other", "invalid_value"],
] as const)("x-xm-webhook is refused before the job is accepted: %s", async ([, headers, named, code]) => {
  const owner = await open();
  await owner.ask("POST", "/default/rotate-secret", {});
  const webhook = named === "other" ? (await (await open()).create()).id : named;
  const { status, error } = await submit(owner, asking(), { "x-xm-webhook": webhook, ...headers });
  expect([status, error]).toMatchObject([400, { code, param: "x-xm-webhook" }]);
  expect((await read(owner, "/v1/jobs")).data).toEqual([]);
  expect(await owner.account.available()).toBe("100.00");
});

test("events of a disabled endpoint are skipped, and sent once it is enabled and recovered", async () => {
  const owner = await open();
  const { id } = await owner.create({ disabled: true });
  const since = Math.floor(running.now() / 1_000);
  const skipped = await ended(owner, (await submit(owner)).id);
  expect(messagesOf(skipped.deliveries)).toEqual([["job.completed", "skipped"]]);
  expect((await owner.ask("POST", `/endpoints/${id}/recover`, { since })).status).toBe(409);
  await owner.ask("PATCH", `/endpoints/${id}`, { disabled: false });
  expect((await owner.ask("POST", `/endpoints/${id}/recover`, { since: since - 8 * 86_400 })).body.error.param).toBe(
    "since",
  );
  for (const [param, span] of [
    ["until", { since, until: since - 1 }],
    ["since", { since: since + 3_600 }],
  ] as const)
    expect((await owner.ask("POST", `/endpoints/${id}/recover`, span)).body.error).toMatchObject({
      code: "invalid_value",
      param,
    });
  expect((await owner.ask("POST", `/endpoints/${id}/recover`, { since, until: since })).body).toMatchObject({
    count: 0,
  });
  const answers = await Promise.all([1, 2].map(() => owner.ask("POST", `/endpoints/${id}/recover`, { since })));
  expect(answers.map(({ status, body }) => `${status} ${String(body["count"])}`).toSorted()).toEqual([
    "202 0",
    "202 1",
  ]);
  const sent = await attempt(owner, id, { kind: "delivered" });
  expect(sent).toMatchObject({
    id: skipped.deliveries[0]?.id,
    webhookId: skipped.deliveries[0]?.webhook_id,
    attempt: 1,
  });
  expect(JSON.parse(sent?.body ?? "")).toEqual(skipped.bodies[0]);

  // Disabling it skips what is open, and deleting it, too.
  const second = await ended(owner, (await submit(owner)).id);
  await owner.ask("PATCH", `/endpoints/${id}`, { disabled: true });
  expect(messagesOf(await owner.deliveries(`object_id=${second.job.id}`))).toEqual([["job.completed", "skipped"]]);
  await owner.ask("PATCH", `/endpoints/${id}`, { disabled: false });
  const third = await ended(owner, (await submit(owner)).id);
  await owner.ask("DELETE", `/endpoints/${id}`);
  expect(messagesOf(await owner.deliveries(`object_id=${third.job.id}`))).toEqual([["job.completed", "skipped"]]);
  expect(await attempt(owner, id, { kind: "delivered" })).toBeUndefined();
});

test("a delivery is claimed by one worker at a time, and again once its claim is over", async () => {
  const owner = await open();
  const { id } = await owner.create();
  await ended(owner, (await submit(owner)).id);
  const receiver = { account: owner.account.id, receiver: id };
  const { sending } = running.webhooks;
  const claims = (await Promise.all([1, 2, 3].map(() => sending.claim(receiver, 10)))).flat();
  expect(claims).toHaveLength(1);
  const [lost] = claims;
  if (!lost) throw new Error("nothing was claimed");
  expect(messagesOf(await owner.deliveries())).toEqual([["job.completed", "delivering"]]);
  running.advance(minuteMs + 1_000);
  expect((await sending.due(1_000)).map((each) => each.receiver)).toContain(id);
  const [taken] = await sending.claim(receiver, 10);
  expect([taken?.id, taken?.attempt]).toEqual([lost.id, 1]);
  const at = new Date(running.now());
  await sending.storeAttempt(lost, { at, durationMs: 1 }, { kind: "failed" });
  expect(messagesOf(await owner.deliveries())).toEqual([["job.completed", "delivering"]]);
  if (taken) await sending.storeAttempt(taken, { at, durationMs: 1, statusCode: 200 }, { kind: "delivered" });
  expect(await owner.deliveries()).toMatchObject([
    { status: "delivered", attempts: [{ status_code: 200 }], next_attempt_at: null },
  ]);
  expect((await owner.ask("GET", `/endpoints/${id}`)).body).toMatchObject({
    failing_since: null,
    last_success_at: Math.floor(at.getTime() / 1_000),
  });
});

test("a failed delivery is retried at its time, ends as failed, and is redelivered with its id", async () => {
  const owner = await open();
  const { id } = await owner.create();
  const { deliveries } = await ended(owner, (await submit(owner)).id);
  const [first] = deliveries;
  const failed = (number: number): AttemptOutcome => (number < 10 ? retryAt(minuteMs) : { kind: "failed" });
  for (let number = 1; number <= 10; number++) {
    expect((await attempt(owner, id, failed))?.attempt).toBe(number);
    expect(await attempt(owner, id, failed)).toBeUndefined();
    running.advance(minuteMs);
  }
  const { body } = await owner.ask("GET", `/deliveries/${first?.id}`);
  expect([body.status, (body["attempts"] as object[]).length, body["next_attempt_at"]]).toEqual(["failed", 10, null]);
  expect(await owner.deliveries("status=failed")).toHaveLength(1);
  const again = await owner.ask("POST", `/deliveries/${first?.id}/redeliver`);
  expect([again.status, again.body]).toMatchObject([202, { status: "pending", webhook_id: first?.webhook_id }]);
  expect(await attempt(owner, id, { kind: "delivered" })).toMatchObject({ attempt: 1, webhookId: first?.webhook_id });
});

test("a body is kept for all ten attempts, however long the pauses are that its receiver asks for", async () => {
  const owner = await open();
  const { id } = await owner.create();
  const { deliveries } = await ended(owner, (await submit(owner)).id);
  const events = running.mongo.db.collection<{ body: string; expiresAt: Date }>("webhookEvents");
  for (let number = 1; number <= 9; number++) {
    const claimed = await attempt(owner, id, retryAt(dayMs));
    expect([claimed?.attempt, claimed?.body]).toEqual([number, expect.any(String)]);
    running.advance(dayMs);
    const [stored, ...others] = await events.find({ account: owner.account.id }).toArray();
    expect(others).toEqual([]);
    expect(stored?.expiresAt.getTime()).toBeGreaterThan(running.now());
  }
  expect(await attempt(owner, id, { kind: "delivered" })).toMatchObject({ attempt: 10 });
  expect(await owner.deliveries()).toMatchObject([{ id: deliveries[0]?.id, status: "delivered" }]);
});

test("an endpoint that answers 410 is disabled at once, one that fails after 5 days and 20 failures", async () => {
  const owner = await open();
  const [gone, failing] = [await owner.create(), await owner.create({ url: hookUrl("b") })];
  const first = await ended(owner, (await submit(owner)).id);
  await attempt(owner, gone.id, { kind: "gone" });
  const shown = async (id: string) => (await owner.ask("GET", `/endpoints/${id}`)).body;
  expect(await shown(gone.id)).toMatchObject({ disabled: true, disabled_reason: "gone", notice: "disabled" });
  expect(first.deliveries).toHaveLength(2);

  for (let failures = 1; failures <= 19; failures++) {
    await attempt(owner, failing.id, retryAt(0));
    if (failures === 1) running.advance(2 * dayMs);
  }
  expect(await shown(failing.id)).toMatchObject({ disabled: false, notice: "failing" });
  running.advance(4 * dayMs);
  await attempt(owner, failing.id, retryAt(0));
  expect(await shown(failing.id)).toMatchObject({ disabled_reason: "failing", notice: "disabled" });
  expect(await attempt(owner, failing.id, retryAt(0))).toBeUndefined();
  expect(await owner.deliveries(`endpoint=${failing.id}`)).toMatchObject([{ status: "skipped" }]);
  const enabled = await owner.ask("PATCH", `/endpoints/${failing.id}`, { disabled: false });
  expect(enabled.body).toMatchObject({ disabled: false, notice: null, failing_since: null });
});

test("receivers with due deliveries are found page by page, whatever one of them has waiting", async () => {
  const owner = await open();
  const endpoints = [await owner.create(), await owner.create({ url: hookUrl("b") })];
  await Promise.all(
    Array.from({ length: 130 }, (_, n) =>
      running.webhooks.record({
        account: owner.account.id,
        type: "balance.low",
        objectId: owner.account.id,
        occurrence: String(n),
        createdAt: new Date(running.now()),
        data: () => ({}),
      }),
    ),
  );
  const found: string[] = [];
  for (let after = ""; ; ) {
    const page = await running.webhooks.sending.due(1, after);
    const [next] = page;
    if (!next) break;
    after = next.receiver;
    if (next.account === owner.account.id) found.push(next.receiver);
  }
  expect(found).toEqual(endpoints.map(({ id }) => id).toSorted());
});
