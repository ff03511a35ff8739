import { expect, test } from "vitest";
import { createRefusals } from "../../api/refusals/index.ts";
import { invalidValue } from "../../shared/errors.ts";
import { dayMs } from "../../shared/platform/clock.ts";
import { newRequestId } from "../../shared/platform/ids.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { connectMongo } from "../../shared/platform/mongo/connection.ts";
import { keyOf } from "../support/account-caller.ts";
import { movableClock } from "../support/movable-clock.ts";
import { migrated } from "../support/schema.ts";
import { testStores } from "../support/servers.ts";
import { eventually } from "../support/service.ts";
import { asking, localModel, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile();

const send = (baseUrl: string, key: string, body: object) =>
  fetch(`${baseUrl}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });

test("a refused request is found by its id, by its own account and key, and by an operator", async () => {
  const { service } = running;
  const [account, empty] = [await service.account("1"), await service.account("0")];
  const rows = [
    [account, {}, { messages: [] }, 400, "invalid_value"],
    [empty, {}, asking(localModel), 402, "insufficient_balance"],
    [account, { models: ["openai/*"] }, asking(localModel), 403, "model_not_allowed"],
    [account, {}, asking("local/none"), 404, "model_not_found"],
    [account, { limits: { requests_per_minute: 1 } }, asking("local/none"), 429, "rate_limit_exceeded"],
  ] as const;
  for (const [{ id: owner }, fields, body, status, code] of rows) {
    const { id: key, key: secret, ask } = await keyOf(service, owner, fields);
    const first = await send(service.baseUrl, secret, body);
    const refused = status === 429 ? await send(service.baseUrl, secret, body) : first;
    expect([refused.status, await refused.json()]).toMatchObject([status, { error: { code } }]);
    const id = refused.headers.get("x-request-id") ?? "";
    const common = { key, endpoint: "/v1/chat/completions", model: null, status: "refused", error: code };
    const message = expect.stringMatching(/./);
    const told = { http_status: status, error_message: message, error_advice: message };
    const shown = { id, object: "request", ...common, ...told, cost_usd: "0.00", attempts: [], files: [] };
    await eventually(async () => (await ask("GET", `/requests/${id}`)).status === 200);
    expect((await ask("GET", `/requests/${id}`)).body).toMatchObject(shown);
    expect(await service.admin("GET", `/requests/${id}`)).toMatchObject({
      id,
      account: owner,
      amount_usd: "0.00",
      request: { ...common, http_status: status },
    });
    // The refused request is not listed as a call.
    expect((await ask("GET", "/requests")).body.data).toEqual([]);

    const others = [await keyOf(service, owner), await keyOf(service, (await service.account("0")).id)];
    const manager = await keyOf(service, owner, { scopes: ["manage"] });
    const statuses = [...others, manager].map(async (each) => (await each.ask("GET", `/requests/${id}`)).status);
    expect(await Promise.all(statuses)).toEqual([404, 404, 200]);
  }
});

test("a failed call has the message of its answer for a day, and advice; an answer's id finds its call and its files", async () => {
  const { service } = running;
  const { id: account } = await service.account("1");
  const [{ id: key, key: secret, ask }, other] = [await keyOf(service, account), await keyOf(service, account)];
  const request = { model: localModel, messages: [{ role: "user", content: "error:429" }] };
  for (const stream of [false, true]) {
    const failed = await send(service.baseUrl, secret, { ...request, stream });
    const { error } = (await failed.json()) as { error: { message: string; code: string } };
    const id = failed.headers.get("x-request-id") ?? "";
    const noted = async () => (await ask("GET", `/requests/${id}`)).body["error_message"] !== null;
    await eventually(noted);
    expect((await ask("GET", `/requests/${id}`)).body).toMatchObject({
      id,
      key,
      status: "failed",
      error: error.code,
      http_status: failed.status,
      error_message: error.message,
      error_advice: expect.stringContaining("Retry-After"),
      files: [],
      cost_usd: "0.00",
    });
    expect(await service.admin("GET", `/requests/${id}`)).toMatchObject({
      request: { status: "failed", http_status: failed.status, error_message: error.message },
    });
    expect((await other.ask("GET", `/requests/${id}`)).status).toBe(404);
    // Lists and the ledger have the code alone.
    expect(JSON.stringify((await ask("GET", "/requests")).body)).not.toContain(error.message);
  }
  const answered = await send(service.baseUrl, secret, asking(localModel));
  const { id } = (await answered.json()) as { id: string };
  await eventually(async () => (await ask("GET", `/requests/${id}`)).status === 200);
  const found = { id: answered.headers.get("x-request-id"), error: null, error_message: null, error_advice: null };
  expect((await ask("GET", `/requests/${id}`)).body).toMatchObject({ ...found, http_status: null, files: [] });
  expect((await other.ask("GET", `/requests/${id}`)).status).toBe(404);

  const headers = { authorization: `Bearer ${secret}`, "content-type": "application/json" };
  const body = JSON.stringify({ model: "local/image", prompt: "a tree", n: 2 });
  const image = await fetch(`${service.baseUrl}/v1/images/generations`, { method: "POST", headers, body });
  const { data } = (await image.json()) as { data: { url: string }[] };
  const made = await ask("GET", `/requests/${image.headers.get("x-request-id")}`);
  const files = made.body["files"] as { url: string; type: string; bytes: number }[];
  expect(files.map(({ url }) => url).toSorted()).toEqual(data.map(({ url }) => url).toSorted());
  expect(files).toMatchObject(files.map(() => ({ type: "image/png", bytes: expect.any(Number) })));
  expect((await ask("GET", "/requests?endpoint=/v1/images/generations")).body.data).toHaveLength(1);
});

test("60 refusals per minute and account are logged and stored for a day, and the others are counted", async () => {
  const { clock, advance } = movableClock();
  let lines = "";
  const log = createLogger("test", "info", { write: (line) => void (lines += line) });
  const mongo = await connectMongo((await testStores()).MONGODB_URI, clock, log);
  await migrated(mongo);
  const refusals = createRefusals({ mongo, clock, log });
  const refuse = (account: string) => {
    const requestId = newRequestId();
    refusals.note({ requestId, account, key: `key_${account}`, endpoint: "/v1/embeddings" }, invalidValue("input", ""));
    return requestId;
  };
  const ids = Array.from({ length: 1_000 }, () => refuse("loud"));
  const quiet = refuse("quiet");
  const stored = () => mongo.connection.collection("refusedRequests").countDocuments();
  await eventually(async () => (await stored()) === 61);
  advance(60_000);
  const next = refuse("loud");
  // Failures have a limit of their own, and no log line here.
  const failure = { requestId: newRequestId(), account: "loud", key: "key_loud", endpoint: "/v1/embeddings" };
  for (let count = 0; count < 100; count++)
    refusals.noteFailure({ ...failure, requestId: newRequestId() }, invalidValue("input", "x"));
  const logged = lines
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(logged).toHaveLength(60 + 1 + 1 + 1);
  expect(logged.filter(({ leftOut }) => leftOut !== undefined)).toMatchObject([{ account: "loud", leftOut: 940 }]);
  expect(logged.find(({ requestId }) => requestId === quiet)).toMatchObject({
    account: "quiet",
    key: "key_quiet",
    endpoint: "/v1/embeddings",
    status: 400,
    code: "invalid_value",
  });
  const [first = "", last = ""] = [ids[0], ids.at(-1)];
  const found = async (account: string, id: string) => (await refusals.find(account, id)) !== undefined;
  expect([await found("loud", first), await found("loud", last), await found("quiet", first)]).toEqual([
    true,
    false,
    false,
  ]);
  await eventually(() => found("loud", next));
  await eventually(async () => (await stored()) === 61 + 1 + 60);
  advance(dayMs);
  expect(await found("loud", first)).toBe(false);
  // While MongoDB is unavailable a refusal neither waits nor throws.
  await mongo.close();
  refuse("quiet");
  await refusals.stop();
});
