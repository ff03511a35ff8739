import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { ConfigError } from "../../shared/platform/config-error.ts";
import { mockIdentity, startMockIdentity } from "../support/mock-aws-identity.ts";
import { mockAccessKey, mockApiKey, mockSession } from "../support/mock-bedrock.ts";
import { startBedrock } from "../support/provider-setup.ts";
import { eventually } from "../support/service.ts";
import { errorOf, log } from "../support/upstreams-setup.ts";

const mantle = (url: string) => `${url}/bedrock-mantle`;
const never = new AbortController().signal;
afterEach(() => void vi.unstubAllEnvs());

describe.each([
  ["an API key", mockApiKey, {}],
  ["an access key", JSON.stringify(mockAccessKey), {}],
  ["a session", JSON.stringify(mockSession), {}],
  [
    "an access key of the environment",
    "identity",
    { AWS_ACCESS_KEY_ID: mockAccessKey.access_key_id, AWS_SECRET_ACCESS_KEY: mockAccessKey.secret_access_key },
  ],
  [
    "a session of the environment",
    "identity",
    {
      AWS_ACCESS_KEY_ID: mockSession.access_key_id,
      AWS_SECRET_ACCESS_KEY: mockSession.secret_access_key,
      AWS_SESSION_TOKEN: mockSession.session_token,
    },
  ],
])("%s", (_, apiKey, env) => {
  test("is accepted for answers, streams, counts and the check, at both endpoints", async () => {
    const { mock, ask, provider, text } = await startBedrock({ apiKey, env });
    for (const way of ["answer", "stream", "count"] as const) await ask(way, text({ system: "Ünï \u{1F600}" }));
    await provider.check?.({ signal: never, log });
    expect(mock.requests.at(-1)?.body).toEqual({ messages: [] });
    const other = await startBedrock({ apiKey, env, baseUrl: mantle });
    await other.provider.check?.({ signal: never, log });
    expect(other.mock.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      "GET /bedrock-mantle/v1/models",
    ]);
  });
});

test.each([
  ["of another account", { ...mockAccessKey, access_key_id: "AKIA0000000000000003" }, 0, 401],
  ["with another secret", { ...mockAccessKey, secret_access_key: "other" }, 0, 403],
  ["of a session without its token", { ...mockSession, session_token: undefined }, 0, 401],
  ["of a session with another token", { ...mockSession, session_token: "other" }, 0, 401],
  ["on a clock that is six minutes fast", mockAccessKey, 6 * 60_000, 403],
])("a key %s is refused as the operator's fault, by the check too", async (_, key, skewMs, status) => {
  const { ask, provider, clock } = await startBedrock({ apiKey: JSON.stringify(key) });
  clock.advance(skewMs);
  const failures = [
    await errorOf(ask("answer")),
    await errorOf(provider.check?.({ signal: never, log }) ?? ask("answer")),
  ];
  for (const failure of failures) {
    expect(failure).toMatchObject({ kind: "misconfigured", status });
    expect(String((failure as Error).message)).not.toContain(mockSession.session_token);
  }
});

test("an API key that is none is refused", async () => {
  const { ask, provider } = await startBedrock({ apiKey: "bedrock-api-key-of-nobody" });
  for (const failure of [
    await errorOf(ask("answer")),
    await errorOf(provider.check?.({ signal: never, log }) ?? ask("answer")),
  ])
    expect(failure).toMatchObject({ kind: "misconfigured", status: 403 });
});

describe("a credential that has none of the forms", () => {
  const secret = "secret-of-the-operator";
  test.each([
    ["JSON that is cut", `{"access_key_id":"AKIA5","secret_access_key":"${secret}`],
    ["no access key", JSON.stringify({ secret_access_key: secret })],
    ["names of AWS's own", JSON.stringify({ accessKeyId: "AKIA5", secretAccessKey: secret })],
    ["a line feed", `key\n${secret}`],
    ["a space in the token", JSON.stringify({ ...mockSession, session_token: `a ${secret}` })],
    ["no text", JSON.stringify({ access_key_id: "AKIA5", secret_access_key: 7, x: secret })],
  ])("ends the start for the operator and a call for a customer, and is not shown: %s", async (_, apiKey) => {
    const atStart = await errorOf(startBedrock({ apiKey, env: {} }));
    expect(atStart).toBeInstanceOf(ConfigError);
    const { mock, ask } = await startBedrock({ apiKey });
    const atCall = await errorOf(ask("answer"));
    expect(atCall).toMatchObject({ kind: "misconfigured", status: undefined });
    for (const error of [atStart, atCall]) expect((error as Error).message).not.toContain(secret);
    expect(mock.requests).toHaveLength(0);
  });
});

/** The environment of a machine whose role STS grants by the token in a file. */
async function webIdentity(token = mockIdentity.token) {
  const sts = await startMockIdentity(mockSession);
  const file = join(tmpdir(), `token-${crypto.randomUUID()}`);
  writeFileSync(file, token);
  onTestFinished(async () => {
    rmSync(file);
    await sts.close();
  });
  const env = { AWS_WEB_IDENTITY_TOKEN_FILE: file, AWS_ROLE_ARN: mockIdentity.role, AWS_ENDPOINT_URL_STS: sts.url };
  return { sts, env };
}

describe("the identity of the machine", () => {
  test("is never a customer's", async () => {
    // The process itself could act as the operator.
    vi.stubEnv("AWS_ACCESS_KEY_ID", mockAccessKey.access_key_id);
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", mockAccessKey.secret_access_key);
    const { mock, ask, provider } = await startBedrock({ apiKey: "identity" });
    const failure = { kind: "misconfigured", message: "only the operator can use the identity of the machine" };
    expect(await errorOf(ask("answer"))).toMatchObject(failure);
    expect(await errorOf(provider.check?.({ signal: never, log }) ?? ask("answer"))).toMatchObject(failure);
    expect(mock.requests).toHaveLength(0);
  });

  test("comes from the given environment, whatever the process has, and is asked for once", async () => {
    vi.stubEnv("AWS_ACCESS_KEY_ID", "AKIA0000000000000004");
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", "process");
    const { sts, env } = await webIdentity();
    const { mock, ask } = await startBedrock({ apiKey: "identity", env });
    await Promise.all([ask("answer"), ask("stream"), ask("count")]);
    await ask("answer");
    expect(sts.requests).toHaveLength(1);
    const sent = mock.requests.map(({ headers }) => headers["x-amz-security-token"]);
    expect(sent).toEqual(Array(4).fill(mockSession.session_token));
  });

  test("is renewed before its end, while calls go on with it", async () => {
    const { sts, env } = await webIdentity();
    sts.respond({ lifeMs: 4 * 60_000 });
    const { ask } = await startBedrock({ apiKey: "identity", env });
    await ask("answer");
    expect(sts.requests).toHaveLength(1);
    await ask("answer");
    await eventually(() => sts.requests.length === 2);
    await ask("answer");
    expect(sts.requests).toHaveLength(2);
  });

  test("that is denied is the operator's fault; one that cannot be asked for is unavailable, and asked for again", async () => {
    const denied = await webIdentity("secret-of-another-issuer");
    const first = await startBedrock({ apiKey: "identity", env: denied.env });
    const failure = await errorOf(first.ask("answer"));
    expect(failure).toMatchObject({ kind: "misconfigured", message: /^no credentials of AWS: \w+$/ });
    const { sts, env } = await webIdentity();
    sts.always({ status: 500, body: "" });
    const second = await startBedrock({ apiKey: "identity", env });
    expect(await errorOf(second.ask("answer"))).toMatchObject({ kind: "unavailable" });
    sts.always();
    await second.ask("answer");
  });

  test("does not keep a call that is aborted", async () => {
    const { sts, env } = await webIdentity();
    sts.respond({ beforeHeaders: new Promise(() => {}) });
    const { ask, text } = await startBedrock({ apiKey: "identity", env });
    const controller = new AbortController();
    const asking = ask("answer", text({}, { signal: controller.signal }));
    await sts.request(0);
    controller.abort(new Error("the caller has disconnected"));
    await expect(asking).rejects.toThrow("the caller has disconnected");
  });

  test("that is silent fails the calls in time, and is asked for anew by the next", async () => {
    const { sts, env } = await webIdentity();
    sts.respond({ beforeHeaders: new Promise(() => {}) });
    const { clock, ask } = await startBedrock({ apiKey: "identity", env });
    const waiting = errorOf(ask("answer"));
    await sts.request(0);
    clock.advance(10_000);
    expect(await waiting).toMatchObject({ kind: "timeout" });
    await ask("answer");
    expect(sts.requests).toHaveLength(2);
  });
});
