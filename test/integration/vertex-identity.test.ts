import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createVertex } from "../../workers/providers/vertex/index.ts";
import { createManualClock } from "../support/manual-clock.ts";
import {
  mockAccount,
  mockAccountWith,
  mockImpersonation,
  mockPoolAudience,
  mockProject,
  mockSubjectToken,
} from "../support/mock-vertex-tokens.ts";
import { startVertex } from "../support/provider-setup.ts";
import { errorOf } from "../support/upstreams-setup.ts";

const folder = mkdtempSync(join(tmpdir(), "vertex-identity-"));
afterAll(() => rmSync(folder, { recursive: true }));
const file = (name: string, content: string): string => {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
};

/** A provider whose credential is the machine's identity, found in an environment that names the mock's servers. */
async function startWith(envOf: (tokens: { url: string; host: string }, now: number) => Promise<object> | object) {
  const started = await startVertex();
  const { mock, clock } = started;
  const { url } = mock.tokens;
  const env = (await envOf({ url, host: new URL(url).host }, clock.now())) as Record<string, string>;
  const parts = { region: "global", project: mockProject };
  const target = { baseUrl: mock.url, apiKey: "identity", parts, env, formats: ["gemini"], concurrency: 2 } as const;
  const provider = createVertex({ ...target, storesAnswers: false }, { clock });
  return { ...started, provider };
}

const external = (url: string, tokenFile: string, more: object = {}) =>
  JSON.stringify({
    type: "external_account",
    audience: mockPoolAudience,
    subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
    token_url: `${url}/v1/token`,
    credential_source: { file: tokenFile },
    ...more,
  });

const route = ({ method, path }: { method: string; path: string }) => `${method} ${path.split("?", 1)[0]}`;
const metadataRoute = "GET /computeMetadata/v1/instance/service-accounts/default/token";
const impersonationRoute = `POST ${mockImpersonation}`;

test.each<readonly [string, Parameters<typeof startWith>[0], readonly string[]]>([
  ["the metadata server", ({ host }) => ({ GCE_METADATA_HOST: host }), [metadataRoute]],
  [
    "the file of a service account",
    ({ url }) => ({
      GOOGLE_APPLICATION_CREDENTIALS: file("account", mockAccount),
      GOOGLE_OAUTH_TOKEN_URL: `${url}/token`,
    }),
    ["POST /token"],
  ],
  [
    "another platform's token",
    async ({ url }, now) => {
      const source = file("subject", `${await mockSubjectToken(now)}\n`);
      return { GOOGLE_APPLICATION_CREDENTIALS: file("external", external(url, source)) };
    },
    ["POST /v1/token"],
  ],
  [
    "another platform's token in JSON, for a service account",
    async ({ url }, now) => {
      const source = file("subject.json", JSON.stringify({ token: await mockSubjectToken(now) }));
      const configuration = external(url, source, {
        credential_source: { file: source, format: { type: "json", subject_token_field_name: "token" } },
        service_account_impersonation_url: url + mockImpersonation,
      });
      return { GOOGLE_APPLICATION_CREDENTIALS: file("impersonated", configuration) };
    },
    ["POST /v1/token", impersonationRoute],
  ],
])("the identity of the machine may be %s", async (_, envOf, routes) => {
  const { mock, provider, text } = await startWith(envOf);
  expect(await provider.answer(text())).toMatchObject({ candidates: [{}] });
  await provider.answer(text());
  expect(mock.tokens.requests.map(route)).toEqual(routes);
  await provider.close();
});

test.each<readonly [string, Parameters<typeof startWith>[0], object]>([
  [
    "no token",
    ({ url }) => ({ GOOGLE_APPLICATION_CREDENTIALS: file("external", external(url, join(folder, "none"))) }),
    { kind: "misconfigured", message: expect.stringContaining("file") },
  ],
  [
    "an expired token",
    async ({ url }, now) => {
      const source = file("expired", await mockSubjectToken(now - 3_600_000));
      return { GOOGLE_APPLICATION_CREDENTIALS: file("external", external(url, source)) };
    },
    { kind: "misconfigured", status: 400 },
  ],
  [
    "a token for another audience",
    async ({ url }, now) => {
      const source = file("subject", await mockSubjectToken(now));
      const audience = "//iam.googleapis.com/projects/123/locations/global/workloadIdentityPools/pool/providers/other";
      return { GOOGLE_APPLICATION_CREDENTIALS: file("external", external(url, source, { audience })) };
    },
    { kind: "misconfigured", status: 400 },
  ],
  [
    "no right to the service account",
    async ({ url }, now) => {
      const source = file("subject", await mockSubjectToken(now));
      const service_account_impersonation_url = url + mockImpersonation.replace("caller", "other");
      const configuration = external(url, source, { service_account_impersonation_url });
      return { GOOGLE_APPLICATION_CREDENTIALS: file("external", configuration) };
    },
    { kind: "misconfigured", status: 404 },
  ],
  ["no metadata server", () => ({ GCE_METADATA_HOST: "127.0.0.1:1" }), { kind: "unavailable", unreachable: true }],
])("a workload with %s reaches no model, and no token is in the failure", async (_, envOf, expected) => {
  const { mock, provider, text } = await startWith(envOf);
  const failure = (await errorOf(provider.answer(text()))) as Error;
  expect(failure).toMatchObject({ name: "UpstreamFailure", ...expected });
  expect(failure.message).not.toMatch(/eyJ|ya29/);
  expect(mock.requests).toEqual([]);
  await provider.close();
});

test("a customer's key gets its tokens where the operator says, never where its file says", async () => {
  const { mock, clock, text } = await startVertex();
  const apiKey = mockAccountWith({ token_uri: `${mock.url}/steal`, universe_domain: "127.0.0.1" });
  const target = {
    baseUrl: mock.url,
    apiKey,
    parts: { region: "global" },
    env: undefined,
    formats: [],
    concurrency: 1,
  };
  const hosts = { GOOGLE_OAUTH_TOKEN_URL: `${mock.tokens.url}/token` };
  const provider = createVertex({ ...target, storesAnswers: false }, { clock, hosts });
  const labels = { team: "customer" };
  expect(await provider.answer(text({ labels }))).toMatchObject({ candidates: [{}] });
  expect(mock.tokens.requests.map(route)).toEqual(["POST /token"]);
  expect(mock.requests.map(({ path, body }) => [path.includes(mockProject), body["labels"]])).toEqual([[true, labels]]);
  await provider.close();
});

test.each([
  [4, { candidates: [{}] }],
  [6, { name: "UpstreamFailure", kind: "misconfigured", status: 400 }],
])("a worker whose clock is %i minutes ahead is told whether it gets a token", async (minutes, outcome) => {
  const { mock, clock, text } = await startVertex();
  const ahead = createManualClock(clock.now() + minutes * 60_000);
  const target = { baseUrl: mock.url, apiKey: mockAccount, parts: {}, env: {}, formats: [], concurrency: 1 };
  const hosts = { GOOGLE_OAUTH_TOKEN_URL: `${mock.tokens.url}/token` };
  const provider = createVertex({ ...target, storesAnswers: false }, { clock: ahead, hosts });
  expect(await provider.answer(text()).catch((error: unknown) => error)).toMatchObject(outcome);
  await provider.close();
});
