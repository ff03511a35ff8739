import { expect, test } from "vitest";
import { type GivenCredential, readConfig, readCredential } from "../../api/provider-keys/credentials.ts";
import { withoutCredential } from "../../workers/provider-keys/index.ts";

const pem = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ==\n-----END PRIVATE KEY-----\n";
const aws = { access_key_id: "AKID000011112222AKID", secret_access_key: "0123456789/abcdef+0123456789abcdef01" };
const app = { tenant_id: "example.com", client_id: "11111111-2222", client_secret: "hidden~0~hidden~1" };
const robot = { client_email: "robot@project-1.iam.gserviceaccount.com", private_key: pem, private_key_id: "abc" };
const key = "sk-proj-0000111122223333";

test.for([
  ["openai", key, key, "sk-...3333"],
  ["fal", "01234567-89ab:cdef01234567", "01234567-89ab:cdef01234567", "...4567"],
  ["bedrock", key, key, "sk-...3333"],
  ["bedrock", aws, JSON.stringify(aws), "AKID...AKID"],
  ["azure", app, JSON.stringify(app), "11111111-2222"],
  // A crafted file cannot name the address to which its token request goes.
  [
    "vertex",
    JSON.stringify({ type: "service_account", ...robot, token_uri: "http://evil", universe_domain: "evil" }),
    JSON.stringify(robot),
    robot.client_email,
  ],
] as const)("of a credential for %s only what is needed is kept (case %#)", ([provider, given, text, label]) => {
  expect(readCredential(provider, given)).toMatchObject({ text, label });
});

test.for([
  ["openai", "short", "credential"],
  ["openai", `${key} `, "credential"],
  ["openai", aws, "credential"],
  ["azure", "{", "credential"],
  ["bedrock", { ...aws, endpoint: "http://evil" }, "credential.endpoint"],
  ["bedrock", { ...aws, secret_access_key: 1 }, "credential.secret_access_key"],
  ["azure", { ...app, tenant_id: "../evil" }, "credential.tenant_id"],
  ["vertex", { ...robot, client_email: "a\nb@c" }, "credential.client_email"],
  ["vertex", { ...robot, private_key: "secret-secret-secret" }, "credential.private_key"],
] as readonly (readonly [Parameters<typeof readCredential>[0], GivenCredential, string])[])(
  "a malformed credential for %s names the field and quotes nothing (case %#)",
  ([provider, given, param]) => {
    const quiet = expect.not.stringMatching(/evil|secret-secret|short/) as string;
    expect(() => readCredential(provider, given)).toThrow(expect.objectContaining({ param, message: quiet }));
  },
);

test.for([
  ["azure", {}, "config.resource"],
  ["azure", { resource: "mine", region: "eu" }, "config.region"],
  ["bedrock", { region: undefined }, "config.region"],
  ["vertex", { region: "global" }, "config.project"],
  ["openai", { deployments: { "gpt-5": "mine" } }, "config.deployments"],
] as const)(
  "a configuration of %s that lacks a part, or has another, names it (case %#)",
  ([provider, given, param]) => {
    expect(() => readConfig({ provider, region: undefined }, given)).toThrow(expect.objectContaining({ param }));
  },
);

test("the region may be the upstream's, and the project that of the service account", () => {
  const vertex = { provider: "vertex", region: "europe-west4" } as const;
  expect(readConfig(vertex, {}, "project-1")).toEqual({ project: "project-1" });
  expect(readConfig(vertex, { project: "other-1", region: "global" }, "project-1")).toEqual({
    project: "other-1",
    region: "global",
  });
});

test.for([
  [`Incorrect API key provided: ${key}. See`, "Incorrect API key provided: .... See"],
  [`Bad ${key.slice(3, 12)}!${key.slice(-8)}`, "Bad ...!..."],
  ["Bad sk-proj-***3333 here", "Bad ... here"],
  [`Bad header: Basic ${Buffer.from(key).toString("base64")}`, "Bad header: Basic ..."],
  [`Bad ${key.slice(0, 7)}`, `Bad ${key.slice(0, 7)}`],
  [`The project is in arrears${"x".repeat(1_000)}`, `The project is in arrears${"x".repeat(475)}`],
] as const)("a message is shown without what it quotes of the credential (case %#)", ([message, shown]) => {
  expect(withoutCredential(message, key)).toBe(shown);
});

test("each text of a JSON credential is hidden", () => {
  const message = `${aws.secret_access_key} of ${aws.access_key_id} is not valid`;
  expect(withoutCredential(message, JSON.stringify(aws))).toBe("... of ... is not valid");
});
