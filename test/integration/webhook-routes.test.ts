import { expect, test } from "vitest";
import type { EventType } from "../../shared/webhooks/index.ts";
import { keyOf, managedAccount } from "../support/account-caller.ts";
import { readDocument } from "../support/openapi.ts";
import { hookUrl, webhookOwner, webhooksOfFile } from "../support/webhook-store-setup.ts";

const running = webhooksOfFile();

const dayMs = 86_400_000;

test("an endpoint is created with its secret, listed without it, changed and deleted", async () => {
  const { service, secrets, mongo } = running;
  const { ask, create, account } = await webhookOwner(service);
  const headers = { Authorization: "Bearer of the receiver", "x-foo": "1" };
  const created = await create({ events: ["job.*", "balance.low"], name: "orders", headers, include_result: true });
  expect(created).toMatchObject({
    object: "webhook_endpoint",
    url: hookUrl("a"),
    name: "orders",
    events: ["job.*", "balance.low"],
    headers: { Authorization: "***", "x-foo": "***" },
    include_result: true,
    disabled: false,
    disabled_reason: null,
    failing_since: null,
  });
  expect(created.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(created["secret_hint"]).toBe(`whsec_...${created.secret.slice(-5, -1)}`);
  const { secret, ...shown } = created;
  expect((await ask("GET", `/endpoints/${created.id}`)).body).toEqual(shown);
  expect((await ask("GET", "/endpoints")).body.data).toEqual([shown]);

  const stored = await mongo.db.collection("webhookEndpoints").findOne({ account: account.id });
  const text = JSON.stringify(stored);
  for (const plain of [secret, "Bearer of the receiver"]) expect(text).not.toContain(plain);
  expect(await secrets.open(account.id, created.id, String(stored?.["sealedHeaders"]))).toBe(JSON.stringify(headers));

  const patched = await ask("PATCH", `/endpoints/${created.id}`, { name: null, headers: {}, disabled: true });
  expect(patched.body).toMatchObject({ name: null, headers: {}, disabled: true, disabled_reason: "by_user" });
  const enabled = await ask("PATCH", `/endpoints/${created.id}`, { disabled: false, url: "https://203.0.114.7" });
  expect(enabled.body).toMatchObject({ disabled: false, url: "https://203.0.114.7/", events: shown["events"] });
  const deleted = await ask("DELETE", `/endpoints/${created.id}`);
  expect(deleted.body).toEqual({ id: created.id, object: "webhook_endpoint", deleted: true });
  expect((await ask("GET", `/endpoints/${created.id}`)).status).toBe(404);
});

test("an account has ten endpoints, however many are created at once", async () => {
  const { ask } = await webhookOwner(running.service);
  const fields = { url: hookUrl("a"), events: ["*"] };
  const answers = await Promise.all(Array.from({ length: 15 }, () => ask("POST", "/endpoints", fields)));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201, 409]));
  const { data } = (await ask("GET", "/endpoints")).body;
  expect(data.length).toBeLessThanOrEqual(10);
  for (let more = data.length; more < 10; more++) expect((await ask("POST", "/endpoints", fields)).status).toBe(201);
  expect((await ask("POST", "/endpoints", fields)).body.error).toMatchObject({ code: "conflict" });
});

test("a replaced secret signs until its grace period is over, and at most four sign", async () => {
  const { service, webhooks, secrets, advance } = running;
  const { ask, create, account } = await webhookOwner(service);
  const { id, secret: first } = await create();
  const signing = async () => {
    await ask("POST", `/deliveries/${(await testOf(id)).delivery}/redeliver`);
    const [claimed] = await webhooks.sending.claim({ account: account.id, receiver: `${id}.test` }, 1);
    return Promise.all((claimed?.secrets ?? []).map((sealed) => secrets.open(account.id, id, sealed)));
  };
  const testOf = (endpoint: string) => webhooks.recordTest(account.id, endpoint, "req_1");
  const rotate = async (graceSeconds?: number) => {
    const body = graceSeconds === undefined ? {} : { grace_seconds: graceSeconds };
    return (await ask("POST", `/endpoints/${id}/rotate-secret`, body)).body.secret;
  };
  const second = await rotate();
  expect(await signing()).toEqual([second, first]);
  advance(dayMs + 1_000);
  expect(await signing()).toEqual([second]);
  const [third, fourth, fifth, sixth] = [await rotate(60), await rotate(60), await rotate(60), await rotate(60)];
  expect(await signing()).toEqual([sixth, fifth, fourth, third]);
  const last = await rotate(0);
  expect(await signing()).toEqual([last]);
});

test.for([
  ["url", { url: "http://203.0.114.7/" }, "invalid_webhook_url"],
  ["url", { url: "nowhere" }, "invalid_webhook_url"],
  ["url", { url: "" }, "invalid_value"],
  ["events", { events: [] }, "invalid_value"],
  ["events[0]", { events: ["job.lost"] }, "invalid_value"],
  ["name", { name: "" }, "invalid_value"],
  ["headers.webhook-id", { headers: { "webhook-id": "1" } }, "invalid_value"],
  ["headers.Host", { headers: { Host: "a" } }, "invalid_value"],
  ["headers.x-a", { headers: { "x-a": "1\r\nx-b: 2" } }, "invalid_value"],
  ["headers.x-a", { headers: { "x-a": "1".repeat(1_025) } }, "invalid_value"],
  ["headers", { headers: { "x-a": "1", "X-A": "2" } }, "invalid_value"],
  ["headers", { headers: Object.fromEntries(Array.from({ length: 11 }, (_, n) => [`x-${n}`, ""])) }, "invalid_value"],
  ["secret", { secret: "whsec_mine" }, "invalid_value"],
] as const)("an endpoint that is not valid names the field: %s (case %#)", async ([param, fields, code]) => {
  const { ask } = await webhookOwner(running.service);
  const { status, body } = await ask("POST", "/endpoints", { url: hookUrl("a"), events: ["*"], ...fields });
  expect([status, body.error]).toMatchObject([400, { code, param }]);
  expect((await ask("GET", "/endpoints")).body.data).toEqual([]);
});

test("another account's endpoints and deliveries are unknown, and a key needs the scope `manage`", async () => {
  const { service, webhooks } = running;
  const [owner, other] = [await webhookOwner(service), await webhookOwner(service)];
  const { id } = await owner.create();
  const { delivery } = await webhooks.recordTest(owner.account.id, id, "req_1");
  const { operations } = await readDocument(service.baseUrl);
  const routes = operations.filter(({ operation }) => operation.tags.includes("Webhooks"));
  expect(routes).toHaveLength(12);
  const before = (await owner.ask("GET", `/deliveries/${delivery}`)).body;
  const foreign: unknown[] = [];
  for (const { method, path } of routes) {
    const at = path.replace("/v1/webhooks", "").replace("{id}", path.includes("deliveries") ? delivery : id);
    const body = path.endsWith("/recover")
      ? { since: Math.floor(running.now() / 1_000) }
      : method === "POST" || method === "PATCH"
        ? {}
        : undefined;
    const weak = await fetch(`${service.baseUrl}/v1/webhooks${at}`, {
      method,
      headers: { authorization: `Bearer ${owner.account.key}` },
    });
    expect([method, path, weak.status]).toEqual([method, path, 403]);
    if (path.includes("{id}")) foreign.push((await other.ask(method, at, body)).status);
  }
  expect(new Set(foreign)).toEqual(new Set([404]));
  expect(await other.deliveries()).toEqual([]);
  expect(await other.deliveries(`endpoint=${id}`)).toEqual([]);
  expect((await owner.ask("GET", `/deliveries/${delivery}`)).body).toEqual(before);
});

test("events are listed without endpoints for 30 days, those of calls are not, and only for keys with `manage`", async () => {
  const { service, webhooks, advance, now } = running;
  const [owner, other] = [await managedAccount(service), await managedAccount(service)];
  const read = async ({ ask }: typeof owner, query = "") => (await ask("GET", `/events${query}`)).body;
  const record = (objectId: string, type: EventType) =>
    webhooks.record({
      account: owner.account.id,
      type,
      objectId,
      createdAt: new Date(now()),
      // A batch of messages has no `object`.
      data: () => ({ id: objectId, ...(type === "key.expiring" && { object: "key", days: 7 }) }),
    });
  for (let run = 0; run < 2; run++) await record("key_1", "key.expiring");
  await record("job_1", "job.completed");
  advance(dayMs);
  await record("msgbatch_1", "message_batch.ended");
  const { data } = await read(owner);
  expect(data).toMatchObject([
    { object: "event", type: "message_batch.ended", data: { id: "msgbatch_1" } },
    { object: "event", type: "key.expiring", data: { id: "key_1", object: "key", days: 7 } },
  ]);
  const first = await read(owner, "?limit=1");
  expect(first).toMatchObject({ data: data.slice(0, 1), has_more: true, next: data[0]?.id });
  expect((await read(owner, `?after=${first.next}`)).data).toEqual(data.slice(1));
  expect(await read(other)).toMatchObject({ data: [], has_more: false });
  expect(await read(other, `?after=${data[0]?.id}`)).toMatchObject({ error: { param: "after" } });
  const weak = await keyOf(service, owner.account.id);
  expect((await weak.ask("GET", "/events")).status).toBe(403);
  // A delivery has its body for seven days, a notice for thirty.
  const stored = await running.mongo.db.collection("notices").findOne({ objectId: "key_1" });
  expect(stored?.["expiresAt"]).toEqual(new Date(stored?.["createdAt"].getTime() + 30 * dayMs));
});

test("answers have the shape that the document describes", async () => {
  const { service, webhooks } = running;
  const document = await readDocument(service.baseUrl);
  const { ask, create, account } = await webhookOwner(service);
  const { id } = await create({ name: "orders" });
  const { delivery } = await webhooks.recordTest(account.id, id, "req_1");
  const [claimed] = await webhooks.sending.claim({ account: account.id, receiver: `${id}.test` }, 1);
  if (!claimed) throw new Error("nothing was claimed");
  const at = new Date(running.now());
  await webhooks.sending.storeAttempt(claimed, { at, durationMs: 1, statusCode: 200 }, { kind: "delivered" });
  const bodies: Readonly<Record<string, object>> = {
    createWebhookEndpoint: { url: hookUrl("b"), events: ["*"] },
    updateWebhookEndpoint: { name: "b" },
    recoverWebhookEndpoint: { since: Math.floor(running.now() / 1_000) },
  };
  const described = document.operations.filter(({ operation }) => operation.tags.includes("Webhooks"));
  // The endpoint is deleted last, and a test waits for a worker.
  const last = described.filter(({ method }) => method === "DELETE");
  const checked = [...described.filter(({ method, path }) => method !== "DELETE" && !path.endsWith("/test")), ...last];
  for (const each of checked) {
    const path = each.path
      .replace("/v1/webhooks", "")
      .replace("{id}", each.path.includes("deliveries") ? delivery : id);
    const body =
      each.method === "GET" || each.method === "DELETE" ? undefined : (bodies[each.operation.operationId] ?? {});
    const { status, body: value } = await ask(each.method, path, body);
    expect([each.method, path, document.faultsOf(each, { status, type: "application/json", value })]).toEqual([
      each.method,
      path,
      [],
    ]);
  }
});
