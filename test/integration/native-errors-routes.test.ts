import { describe, expect, test } from "vitest";
import { movableClock } from "../support/movable-clock.ts";
import {
  type Asked,
  bare,
  chatFace,
  type Face,
  faces,
  geminiFace,
  messagesFace,
  refusalIn,
  refusalOf,
  responsesFace,
  send,
  withRelayedModel,
} from "../support/native-formats.ts";
import { testStores } from "../support/servers.ts";
import { eventually, spawnApi, spawnWorker } from "../support/service.ts";
import {
  expectUntouched,
  localModel,
  nanoUsd,
  type Refusal,
  serviceOfFile,
  startWithProvider,
} from "../support/service-setup.ts";

const running = serviceOfFile({ CATALOG_FILE: withRelayedModel() });
const invalid = (param: string | null, message?: RegExp): Refusal => ({
  status: 400,
  type: "invalid_request_error",
  code: "invalid_value",
  param,
  ...(message && { message }),
});
const noKey: Refusal = { status: 401, type: "authentication_error", code: "invalid_api_key" };
const limited: Refusal = { status: 429, type: "rate_limit_error", code: "rate_limit_exceeded" };
const full: Refusal = { status: 503, type: "server_error", code: "no_capacity", message: /No worker/ };
const late: Refusal = { status: 504, type: "server_error", code: "upstream_timeout" };

describe("an unknown route answers in the error shape of its prefix", () => {
  const unknown: Refusal = { status: 404, type: "not_found_error", code: "unknown_url", message: /Unknown URL/ };
  const notAllowed: Refusal = { status: 405, type: "not_found_error", code: "method_not_allowed" };
  const escape = invalid("path", /percent escape/);

  const rows: readonly (readonly [Face, string, string, Refusal, allow?: string])[] = [
    [chatFace, "GET", "/", unknown],
    [chatFace, "GET", "/v1", unknown],
    [chatFace, "POST", "/v1/edits", unknown],
    [chatFace, "POST", "/v2/chat/completions", unknown],
    [chatFace, "GET", "/v1/chat/completions/more", unknown],
    [chatFace, "GET", "/%c3%28", unknown],
    [chatFace, "DELETE", "/v1/embeddings", notAllowed, "POST"],
    [chatFace, "POST", "/v1/models", notAllowed, "GET, HEAD"],
    [chatFace, "DELETE", "/v1/models/local/chat", notAllowed, "GET, HEAD"],
    [chatFace, "PATCH", "/v1/models/local%2Fchat", notAllowed, "GET, HEAD"],
    [chatFace, "GET", "/v1/models/%E0%A4%A", escape],
    [chatFace, "GET", "/v1/models/local/%", escape],
    [chatFace, "POST", "/v1/chat/nothing", unknown],
    [chatFace, "GET", "/v1/chat/completions", notAllowed, "POST"],
    [responsesFace, "POST", "/v1/responses/resp_1", unknown],
    [responsesFace, "GET", "/v1/responses", notAllowed, "POST"],
    [messagesFace, "GET", "/v1/messages", notAllowed, "POST"],
    [messagesFace, "PUT", "/v1/messages/count_tokens", notAllowed, "POST"],
    [geminiFace, "POST", "/v1beta/models/local/chat:predict", unknown],
    [geminiFace, "POST", "/v1/models/local/chat:batchGenerateContent", unknown],
    [geminiFace, "POST", "/v1beta/models/local/chat", notAllowed, "GET, HEAD"],
    [geminiFace, "GET", "/v1beta/nothing", unknown],
    [geminiFace, "POST", "/v1beta/models/%ZZ:generateContent", escape],
    [geminiFace, "POST", "/v1/models/%E0%A4%A:generateContent", escape],
    [geminiFace, "GET", "/v1beta/models/%ZZ", escape],
    [chatFace, "GET", "/v1/models/%ZZ", escape],
  ];

  test.each(rows.map(([face, method, path, expected, allow]) => ({ face, method, path, expected, allow })))(
    "$face.name: $method $path",
    async ({ face, method, path, expected, allow }) => {
      const { key } = await running.service.account("1");
      const response = await fetch(`${running.service.baseUrl}${path}?secret=hidden`, {
        method,
        headers: { authorization: `Bearer ${key}` },
        ...(method !== "GET" && { body: "{}" }),
      });
      expect(await response.clone().text()).not.toContain("hidden");
      expect(response.headers.get("allow")).toBe(allow ?? null);
      expect(await refusalIn(face, response)).toEqual(refusalOf(face, expected));
    },
  );
});

test("no worker: 503 with Retry-After in every format, nothing is held", async () => {
  const { client } = await spawnApi(await testStores());
  const customer = await client.account("1");
  for (const face of faces) {
    expect(await refusalIn(face, await send(customer, face.ask(localModel, "hi")))).toEqual(refusalOf(face, full));
    expect(await refusalIn(face, await send(customer, face.stream(localModel, "hi")))).toEqual(refusalOf(face, full));
  }
  await expectUntouched(client, customer, "1.00");
});

test("a call past its deadline: 504 in every format, must not be retried, nothing charged", async () => {
  const { clock, advance, isWaiting } = movableClock();
  const env = { CALL_TIMEOUT_MS: "60000", PING_INTERVAL_MS: "600000", CATALOG_FILE: withRelayedModel() };
  const { service } = await startWithProvider(env, undefined, clock);
  for (const [at, face] of faces.entries())
    for (const [way, ask] of [face.ask, face.stream].entries()) {
      // The model's pause tells the calls apart.
      const pauseMs = 500_000 + 2 * at + way;
      const customer = await service.account("1");
      const calling = send(customer, ask(localModel, `slow:${pauseMs}`));
      await eventually(() => isWaiting(pauseMs));
      advance(60_000);
      const response = await calling;
      expect(response.headers.get("x-should-retry")).toBe("false");
      expect(await refusalIn(face, response)).toEqual(refusalOf(face, late));
      await expectUntouched(service, customer, "1.00");
    }
});

describe.each([
  { face: messagesFace, path: "/v1/messages/count_tokens" },
  { face: geminiFace, path: "/v1beta/models/local/chat:countTokens" },
  { face: responsesFace, path: "/v1/responses/input_tokens" },
])("$path", ({ face, path }) => {
  const asked = { ...face.ask(localModel, "hi"), path };

  test("is free, also without a balance, and does not count toward the token limit", async () => {
    const customer = await running.service.account("0", { limits: { tokens_per_minute: 1 } });
    const response = await send(customer, asked);
    expect(response.status).toBe(200);
    expect(response.headers.get("x-xm-token-count")).toMatch(/^(estimate|provider)$/);
    await running.service.settled();
    const entries = (await customer.ledger("usage")) as unknown as readonly { amount_usd: string }[];
    for (const { amount_usd } of entries) expect(nanoUsd(amount_usd)).toBe(0n);
  });

  test("errors have the format's own shape", async () => {
    const customer = await running.service.account("1", { limits: { requests_per_minute: 3 } });
    expect(await refusalIn(face, await bare(running.service, asked))).toEqual(refusalOf(face, noKey));
    expect(await refusalIn(face, await customer.post(path, "{"))).toEqual(
      refusalOf(face, invalid(null, /not valid JSON/)),
    );
    const field = { chat: "messages", messages: "messages", responses: "input", gemini: "contents" }[face.format];
    expect(await refusalIn(face, await customer.post(path, { ...asked.body, [field]: 5 }))).toEqual(
      refusalOf(face, invalid(field, new RegExp(field))),
    );
    expect((await send(customer, asked)).status).toBe(200);
    expect(await refusalIn(face, await send(customer, asked))).toEqual(
      refusalOf(face, { ...limited, message: /requests a minute, limit 3/ }),
    );
    const frozen = await running.service.account("1");
    await running.service.admin("PATCH", `/accounts/${frozen.id}`, { frozen: true });
    expect(await refusalIn(face, await send(frozen, asked))).toEqual(
      refusalOf(face, {
        status: 403,
        type: "permission_error",
        code: "account_frozen",
      }),
    );
  });
});

test("a key in the query never appears in the logs of the API or the worker", async () => {
  const stores = await testStores();
  const worker = await spawnWorker(stores, { LOG_LEVEL: "trace" });
  const api = await spawnApi(stores, { LOG_LEVEL: "trace" });
  const customer = await api.client.account("1");
  const call = (verb: string, key = customer.key, body: object = geminiFace.ask(localModel, "hi").body) =>
    bare(api.client, { path: `/v1beta/models/local/chat:${verb}?key=${key}`, body: body as Asked["body"] });
  await eventually(async () => (await call("generateContent")).status === 200);
  const wrong = `live_${"w".repeat(40)}`;
  const statuses = await Promise.all([
    call("generateContent", wrong),
    call("streamGenerateContent"),
    call("generateContent", customer.key, { contents: 5 }),
    call("generateContent", customer.key, geminiFace.ask(localModel, "error:502").body),
    call("noSuchVerb"),
    fetch(`${api.client.baseUrl}/v1beta/models?key=${customer.key}`),
    fetch(`${api.client.baseUrl}/v1beta/models/%ZZ?key=${customer.key}`),
  ]);
  for (const response of statuses) expect(await response.text()).not.toContain(customer.key);
  expect(statuses.map(({ status }) => status)).toEqual([401, 200, 400, 502, 404, 200, 400]);
  const hasCode = (code: string) => (line: object) => "code" in line && line.code === code;
  await Promise.all([api.line(hasCode("upstream_error")), worker.line(hasCode("upstream_error"))]);
  const lines = JSON.stringify([api.log, worker.log]);
  expect(lines).toContain("/v1beta/models:generateContent");
  expect(lines).not.toContain(customer.key);
  expect(lines).not.toContain(wrong);
});
