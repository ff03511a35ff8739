import { expect, test } from "vitest";
import { ConfigError } from "../../shared/platform/config-error.ts";
import { readCredential } from "../../workers/providers/azure/credentials.ts";
import { createAzure } from "../../workers/providers/azure/index.ts";
import { createManualClock } from "../support/manual-clock.ts";

const application = { tenant_id: "contoso.onmicrosoft.com", client_id: "app", client_secret: "hidden~value" };
const env = { AZURE_TENANT_ID: "tenant", AZURE_CLIENT_ID: "app" };

test.each([
  ["a key", " 0123456789abcdef\n", {}, { key: "0123456789abcdef" }],
  [
    "an application",
    JSON.stringify(application),
    undefined,
    { tenantId: application.tenant_id, clientId: "app", secret: application.client_secret },
  ],
  [
    "a workload, whose file takes precedence over a secret",
    "identity",
    { ...env, AZURE_FEDERATED_TOKEN_FILE: "/token", AZURE_CLIENT_SECRET: "x" },
    { tenantId: "tenant", clientId: "app", assertionFile: "/token" },
  ],
  [
    "an application of the environment",
    "identity",
    { ...env, AZURE_CLIENT_SECRET: "x" },
    { tenantId: "tenant", clientId: "app", secret: "x" },
  ],
])("reads %s", (_, text, environment, expected) => {
  expect(readCredential(text, environment)).toEqual(expected);
});

test.each<readonly [text: string, environment: Readonly<Record<string, string>> | undefined, fault: RegExp]>([
  ["key with spaces", {}, /is not a key/],
  ["key\r\nx-other: 1", {}, /is not a key/],
  ["{hidden~value", {}, /is not valid JSON/],
  [JSON.stringify({ ...application, client_secret: undefined }), {}, /client_secret is missing/],
  [JSON.stringify({ ...application, client_secret: 7 }), {}, /client_secret is missing, or is not a text/],
  [JSON.stringify({ ...application, tenant_id: "a/../b" }), {}, /tenant_id is not a GUID or a name/],
  [JSON.stringify({ ...application, "hidden~value": 1 }), {}, /fields other than tenant_id, client_id/],
  ["identity", undefined, /not the identity of a machine/],
  ["identity", {}, /AZURE_TENANT_ID is missing.*AZURE_CLIENT_ID is missing/],
  ["identity", env, /AZURE_FEDERATED_TOKEN_FILE or AZURE_CLIENT_SECRET/],
])("refuses %j with %j without showing it", (text, environment, fault) => {
  const read = () => readCredential(text, environment);
  expect(read).toThrow(ConfigError);
  expect(read).toThrow(fault);
  expect(read).not.toThrow(/hidden/);
});

test.each([
  ["identity", {}, /AZURE_TENANT_ID is missing/],
  [JSON.stringify(application), { AZURE_AUTHORITY_HOST: "ftp://login" }, /AZURE_AUTHORITY_HOST/],
])("an operator's credential that cannot be used stops the start: %s", (apiKey, environment, fault) => {
  const target = { baseUrl: "https://r.openai.azure.com/openai/v1", concurrency: 1, formats: ["chat"] } as const;
  const endpoint = { ...target, apiKey, parts: {}, env: environment, storesAnswers: true };
  expect(() => createAzure(endpoint, { clock: createManualClock() })).toThrow(fault);
});
