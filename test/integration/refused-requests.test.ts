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
    const shown = { id, object: "request", ...common, http_status: status, cost_usd: "0.00", attempts: [] };
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
  advance(dayMs);
  expect(await found("loud", first)).toBe(false);
  // While MongoDB is unavailable a refusal neither waits nor throws.
  await mongo.close();
  refuse("quiet");
  await refusals.stop();
});
