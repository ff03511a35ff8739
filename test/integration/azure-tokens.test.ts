import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { federatedToken, mockApplication, mockSecret, mockTenant } from "../support/mock-entra.ts";
import { startAzure, startDatedAzure, startFoundry } from "../support/provider-setup.ts";
import { eventually } from "../support/service.ts";
import { errorOf } from "../support/upstreams-setup.ts";

const application = JSON.stringify({
  tenant_id: mockTenant,
  client_id: mockApplication,
  client_secret: mockSecret,
});
const tokenPath = `/${mockTenant}/oauth2/v2.0/token`;
/** A file that is removed at the end of the test. */
function temporaryFile(content: string): string {
  const folder = mkdtempSync(join(tmpdir(), "azure-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "token");
  writeFileSync(file, content);
  return file;
}

const identity = { AZURE_TENANT_ID: mockTenant, AZURE_CLIENT_ID: mockApplication };

test.each([
  ["v1", startAzure, "https://ai.azure.com/.default"],
  ["dated", startDatedAzure, "https://cognitiveservices.azure.com/.default"],
  ["Claude's", startFoundry, "https://ai.azure.com/.default"],
] as const)(
  "an application gets one token for all calls, for the audience of the API (%s)",
  async (_, startProvider, scope) => {
    const { mock, ask } = await startProvider({ apiKey: application });
    await Promise.all([ask("answer"), ask("answer")]);
    await ask("stream");
    const asked = mock.requests.filter(({ path }) => path === tokenPath);
    expect(asked).toHaveLength(1);
    expect(Object.fromEntries(new URLSearchParams(asked[0]?.bytes.toString()))).toEqual({
      grant_type: "client_credentials",
      client_id: mockApplication,
      client_secret: mockSecret,
      scope,
    });
    const [token] = mock.issuedTokens;
    const others = mock.requests.filter(({ path }) => path !== tokenPath).map(({ headers }) => headers);
    expect(others).toHaveLength(3);
    for (const headers of others) {
      expect(headers.authorization).toBe(`Bearer ${token}`);
      expect(headers).not.toHaveProperty("api-key");
    }
  },
);

test("the identity of a workload proves itself with its file, which is read for each token", async () => {
  const file = temporaryFile(await federatedToken());
  const env = { ...identity, AZURE_FEDERATED_TOKEN_FILE: file };
  const { mock, clock, ask } = await startAzure({ apiKey: "identity", env });
  await ask("answer");
  const next = await federatedToken();
  writeFileSync(file, `${next}\n`);
  clock.advance(3_599_000);
  await ask("answer");
  const asked = mock.requests.filter(({ path }) => path === tokenPath);
  const sent = asked.map(({ bytes }) => new URLSearchParams(bytes.toString()));
  expect(sent).toHaveLength(2);
  expect(sent[1]?.get("client_assertion")).toBe(next);
  expect(sent[0]?.get("client_assertion")).not.toBe(next);
  expect(sent.map((each) => each.has("client_secret"))).toEqual([false, false]);
});

test("the identity of a machine may also be an application with a secret", async () => {
  const { ask } = await startAzure({ apiKey: "identity", env: { ...identity, AZURE_CLIENT_SECRET: mockSecret } });
  expect(await ask("answer")).toMatchObject({ object: "chat.completion" });
});

test("a token is fetched anew before it expires, while calls use the earlier one", async () => {
  const { mock, clock, ask } = await startAzure({ apiKey: application });
  await ask("answer");
  clock.advance(3_599_000 - 300_001);
  await ask("answer");
  expect(mock.issuedTokens).toHaveLength(1);
  clock.advance(1);
  await Promise.all([ask("answer"), ask("answer")]);
  const used = () =>
    mock.requests
      .flatMap(({ headers }) => headers.authorization ?? [])
      .map((each) => mock.issuedTokens.indexOf(each.replace("Bearer ", "")));
  await eventually(async () => {
    await ask("answer");
    return used().at(-1) !== 0;
  });
  expect(mock.issuedTokens).toHaveLength(2);
  expect(used().join()).toMatch(/^(0,){4,}1$/);
});

test("a token that the API refuses is dropped once, without blame for the credential, and never a young one", async () => {
  const { mock, clock, ask } = await startAzure({ apiKey: application });
  await ask("answer");
  mock.revokeTokens();
  expect(await errorOf(ask("answer"))).toMatchObject({ kind: "misconfigured", status: 401 });
  expect(await errorOf(ask("answer"))).toMatchObject({ kind: "misconfigured", status: 401 });
  expect(mock.issuedTokens).toHaveLength(1);
  clock.advance(60_000);
  expect(await errorOf(ask("answer"))).toMatchObject({ kind: "unavailable", status: 401 });
  expect(await ask("answer")).toMatchObject({ object: "chat.completion" });
  expect(mock.issuedTokens).toHaveLength(2);
});

const changed = (field: string, value: string) => JSON.stringify({ ...JSON.parse(application), [field]: value });
test.each([
  ["a wrong secret", changed("client_secret", "wrong-secret-0123"), "AADSTS7000215"],
  ["an unknown application", changed("client_id", "other"), "AADSTS700016"],
  ["an unknown tenant", changed("tenant_id", "contoso.onmicrosoft.com"), "AADSTS90002"],
  ["a wrong key", "0".repeat(32), "Access denied due to invalid subscription key"],
])("%s is a configuration fault, and no text shows it", async (_, apiKey, text) => {
  const { mock, ask } = await startAzure({ apiKey });
  for (const way of ["answer", "stream", "embed"] as const) {
    const failure = (await errorOf(ask(way))) as Error;
    expect(failure).toMatchObject({ kind: "misconfigured", message: expect.stringContaining(text) });
    expect(failure.message).not.toMatch(/wrong-secret|0000/);
  }
  expect(mock.requests).toHaveLength(3);
});

test.each([
  ["expired", () => federatedToken({ expires: "1s ago" }), "AADSTS700024"],
  ["for another audience", () => federatedToken({ audience: "sts.amazonaws.com" }), "AADSTS700213"],
  ["empty", () => "", "is empty"],
])("a workload's token that is %s fails without showing it", async (_, make, text) => {
  const token = await make();
  const env = { ...identity, AZURE_FEDERATED_TOKEN_FILE: temporaryFile(token) };
  const { ask } = await startAzure({ apiKey: "identity", env });
  const failure = (await errorOf(ask("answer"))) as Error;
  expect(failure).toMatchObject({ kind: "misconfigured", message: expect.stringContaining(text) });
  expect(failure.message).not.toContain(token || "client_assertion");
});

test.each([
  ["busy", { status: 429, headers: { "retry-after": "3" } }, { kind: "busy", retryAfterMs: 3_000 }],
  ["down", { status: 503, body: "<html>" }, { kind: "unavailable", status: 503 }],
  ["without a token", { body: { token_type: "Bearer" } }, { kind: "unavailable" }],
  ["with a token of another kind", { body: { token_type: "mac", access_token: "a" } }, { kind: "unavailable" }],
  ["with a split token", { body: { token_type: "Bearer", access_token: "a\r\nb: c" } }, { kind: "unavailable" }],
  ["cut off", { cutAfter: -1 }, { kind: "unavailable" }],
])("a token server that is %s fails the calls that wait, and the next call asks again", async (_, answer, failure) => {
  const { mock, ask } = await startAzure({ apiKey: application });
  mock.respondTo(`POST ${tokenPath}`, answer);
  const failures = await Promise.all([errorOf(ask("answer")), errorOf(ask("answer"))]);
  expect(failures).toMatchObject([failure, failure]);
  expect(mock.requests).toHaveLength(1);
  expect(await ask("answer")).toMatchObject({ object: "chat.completion" });
});

test("a token server that is silent fails the calls in time; a caller who leaves does not wait, nor end it for others", async () => {
  const { mock, clock, ask, text } = await startAzure({ apiKey: application });
  mock.respondTo(`POST ${tokenPath}`, { beforeHeaders: new Promise(() => {}) });
  const caller = new AbortController();
  const left = errorOf(ask("answer", text({}, { signal: caller.signal })));
  const waiting = errorOf(ask("answer"));
  await mock.request(0);
  caller.abort(new Error("gone"));
  expect(await left).toMatchObject({ message: "gone" });
  clock.advance(10_000);
  expect(await waiting).toMatchObject({ kind: "timeout" });
});

test.each([
  ["v1", startAzure, "/openai/v1/models"],
  ["dated", startDatedAzure, "/openai/models?api-version=2024-10-21"],
  ["Claude's", startFoundry, "/openai/v1/models"],
] as const)("a check asks for the list of models, which is free (%s)", async (_, startProvider, path) => {
  const { mock, provider, text } = await startProvider();
  await provider.check?.(text());
  expect(mock.requests.map((request) => [request.method, request.path])).toEqual([["GET", path]]);
  const wrong = await startProvider({ apiKey: "0".repeat(32) });
  expect(await errorOf(Promise.resolve(wrong.provider.check?.(wrong.text())))).toMatchObject({
    kind: "misconfigured",
    status: 401,
  });
});

test.each([
  ["the identity of the machine", "identity"],
  ["an application without a secret", JSON.stringify({ tenant_id: mockTenant, client_id: mockApplication })],
])("a customer's key cannot be %s: each call fails, and nothing is sent", async (_, apiKey) => {
  const { mock, ask } = await startAzure({ apiKey });
  for (const way of ["answer", "stream"] as const)
    expect(await errorOf(ask(way))).toMatchObject({ kind: "misconfigured" });
  expect(mock.requests).toHaveLength(0);
});
