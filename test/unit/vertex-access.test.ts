import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { accessOf } from "../../workers/providers/vertex/access.ts";
import { readCredential } from "../../workers/providers/vertex/credentials.ts";
import { createVertex } from "../../workers/providers/vertex/index.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { mockAccount, mockAccountWith, mockPrivateKey, mockProject } from "../support/mock-vertex-tokens.ts";
import { errorOf, log } from "../support/upstreams-setup.ts";

const folder = mkdtempSync(join(tmpdir(), "vertex-"));
afterAll(() => rmSync(folder, { recursive: true }));

const google = "https://aiplatform.googleapis.com";
const key = "AIzaSyOperator_0123456789";

test.each([
  ["global", google, `${google}/v1/projects/${mockProject}/locations/global`],
  ["us", google, `https://aiplatform.us.rep.googleapis.com/v1/projects/${mockProject}/locations/us`],
  ["eu", google, `https://aiplatform.eu.rep.googleapis.com/v1/projects/${mockProject}/locations/eu`],
  [
    "europe-west4",
    google,
    `https://europe-west4-aiplatform.googleapis.com/v1/projects/${mockProject}/locations/europe-west4`,
  ],
  ["eu", "https://proxy.example", `https://proxy.example/v1/projects/${mockProject}/locations/eu`],
  ["eu", "https://proxy.example/v1/", `https://proxy.example/v1/projects/${mockProject}/locations/eu`],
  ["eu", "https://proxy.example/a/locations/eu", "https://proxy.example/a/locations/eu"],
  ["global", "https://proxy.example/a/locations/eu/", "https://proxy.example/a/locations/eu/"],
])("the address of location %s below %s", (region, baseUrl, address) => {
  const parts = { region, project: mockProject };
  expect(accessOf({ apiKey: mockAccount, env: {}, parts, baseUrl }).baseUrl).toBe(address);
});

test.each<readonly [string, Parameters<typeof accessOf>[0]["parts"], string, string]>([
  ["a location that leads elsewhere", { region: "evil.example/", project: "acme" }, "location", google],
  ["a location that is a host", { region: "evil.example#", project: "acme" }, "location", google],
  ["a project that leads elsewhere", { region: "eu", project: "../../other" }, "project", google],
  ["an address in another location", { region: "eu" }, "location", "https://proxy.example/a/locations/us-central1"],
])("%s is refused", (_, parts, name, baseUrl) => {
  const reading = () => accessOf({ apiKey: mockAccount, env: undefined, parts, baseUrl });
  expect(reading).toThrow(name);
});

test("an API key needs no project", () => {
  expect(accessOf({ apiKey: key, env: undefined, baseUrl: google, parts: {} }).baseUrl).toBe(`${google}/v1`);
});

test("of a service account's file only the account, its key and its project are read", () => {
  expect(readCredential(`\n${mockAccount}\n`, undefined)).toEqual({
    type: "service_account",
    email: "caller@acme-prod.iam.gserviceaccount.com",
    keyId: "0123456789abcdef0123456789abcdef01234567",
    privateKey: expect.anything(),
    project: mockProject,
  });
});

const external = {
  type: "external_account",
  audience: "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/a/providers/b",
  subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
  token_url: "https://sts.googleapis.com/v1/token",
  credential_source: { file: "/var/run/secrets/tokens/gcp", format: { type: "json", subject_token_field_name: "t" } },
};

test("the identity of the machine is a file's, else the metadata server's", () => {
  const fileWith = (name: string, content: string) => {
    writeFileSync(join(folder, name), content);
    return { GOOGLE_APPLICATION_CREDENTIALS: join(folder, name) };
  };
  const of = (env: Record<string, string>) => readCredential("identity", env);
  expect(of({})).toEqual({ type: "metadata", host: "metadata.google.internal" });
  expect(of({ GCE_METADATA_HOST: "169.254.169.254:80" })).toEqual({ type: "metadata", host: "169.254.169.254:80" });
  expect(of(fileWith("account", mockAccount))).toMatchObject({ type: "service_account", project: mockProject });
  expect(of(fileWith("external", JSON.stringify(external)))).toEqual({
    type: "external_account",
    audience: external.audience,
    subjectTokenType: external.subject_token_type,
    tokenUrl: external.token_url,
    file: external.credential_source.file,
    field: "t",
    impersonationUrl: undefined,
  });
  const refused = (change: object) => () => of(fileWith("wrong", JSON.stringify({ ...external, ...change })));
  expect(refused({ type: "authorized_user" })).toThrow("type");
  expect(refused({ audience: "" })).toThrow("audience");
  expect(refused({ credential_source: { url: "http://169.254.169.254/token" } })).toThrow("credential_source.file");
  expect(refused({ credential_source: { file: "/a", format: { type: "json" } } })).toThrow("subject_token_field_name");
  expect(refused({ token_url: "file:///etc/passwd" })).toThrow("address");
  expect(() => of(fileWith("text", "no JSON"))).toThrow("JSON");
  expect(() => of({ GOOGLE_APPLICATION_CREDENTIALS: join(folder, "none") })).toThrow("ENOENT");
  expect(() => of({ GCE_METADATA_HOST: "evil.example/a?" })).toThrow("GCE_METADATA_HOST");
});

const parts = { region: "global", project: mockProject };
const endpoint = { baseUrl: google, parts, concurrency: 1, storesAnswers: false, formats: ["gemini"] } as const;
const deps = { clock: createManualClock() };

/** Credentials that nobody can use, with a text that must not be shown. */
const unusable: readonly (readonly [string, string])[] = [
  ["none", ""],
  ["two lines", `${key}\nhost: evil.example`],
  ["broken JSON", '{"type": "service_account", "private_key": "secret-in-broken-json"'],
  ["another kind of account", JSON.stringify({ ...external, client_secret: "secret-of-federation" })],
  ["no account", mockAccountWith({ client_email: "secret" })],
  ["no id of the key", mockAccountWith({ private_key_id: undefined })],
  ["no private key", mockAccountWith({ private_key: "secret-that-is-no-key" })],
  ["a short key", mockAccountWith({ private_key: mockPrivateKey(1_024) })],
];

test.each(unusable)("an operator's credential with %s ends the start, unseen", (_, apiKey) => {
  const starting = () => createVertex({ ...endpoint, apiKey, env: {} }, deps);
  expect(starting).toThrow(
    expect.objectContaining({ name: "ConfigError", message: expect.stringMatching(/^Vertex AI: /) }),
  );
  expect(starting).not.toThrow(/secret|PRIVATE KEY|evil/);
});

test("an operator's token endpoint must be an address", () => {
  const env = { GOOGLE_OAUTH_TOKEN_URL: "oauth2.example/token" };
  expect(() => createVertex({ ...endpoint, apiKey: mockAccount, env }, deps)).toThrow("GOOGLE_OAUTH_TOKEN_URL");
});

test.each([...unusable, ["the identity of the machine", "identity"] as const])(
  "a customer's credential with %s fails at its use, unseen",
  async (_, apiKey) => {
    const provider = createVertex({ ...endpoint, apiKey, env: undefined }, { ...deps, hosts: {} });
    const signal = new AbortController().signal;
    const call = { format: "gemini", model: "m", body: {}, headers: {}, signal, reserveMemory: () => {}, log } as const;
    const failures = [
      await errorOf(provider.answer(call)),
      await errorOf(Array.fromAsync(provider.stream(call))),
      await errorOf(provider.embed(call)),
      await errorOf(provider.check?.(call) as Promise<void>),
    ] as Error[];
    for (const failure of failures) {
      expect(failure).toMatchObject({ name: "UpstreamFailure", kind: "misconfigured" });
      expect(failure.message).not.toMatch(/secret|PRIVATE KEY|evil/);
    }
    await provider.close();
  },
);
