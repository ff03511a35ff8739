import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { loadCatalog, upstreamVariables } from "#catalog";
import { environment, loadConfig } from "#platform/config";

interface Service {
  readonly environment?: Readonly<Record<string, string>>;
  readonly command?: readonly string[];
  readonly volumes?: readonly string[];
}

const compose = parse(readFileSync("docker-compose.yml", "utf8"), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
};
const known = new Set([
  ...Object.keys(environment.shape),
  ...upstreamVariables(loadCatalog(undefined)).map(({ name }) => name),
]);
const example = readFileSync(".env.example", "utf8")
  .split("\n")
  .filter((line) => line && !line.startsWith("#"))
  .map((line) => line.split("=", 2) as [string, string]);

/** `${NAME:-default}` and `${NAME:?why}` as compose reads them from the given variables. */
const resolve = (text: string, from: Readonly<Record<string, string>>) =>
  text.replace(
    /\$\{(\w+)(?::-([^}]*)|:\?[^}]*)?\}/g,
    (_, name: string, initial?: string) => from[name] || initial || "",
  );

test.each(["api", "worker"])("every variable that compose gives the %s is one that the service reads", (name) => {
  const given = compose.services[name]?.environment ?? {};
  expect(Object.keys(given).filter((variable) => !known.has(variable))).toEqual([]);
});

/** Values of variables that do not accept any text. */
const shaped = {
  PUBLIC_URL: "https://example.com",
  S3_PUBLIC_ENDPOINT: "https://s3.example.com",
  WORKER_PAYLOAD_BUDGET_BYTES: "268435456",
  X402_PAY_TO: "11111111111111111111111111111111",
  X402_NETWORK: "devnet",
  SOLANA_RPC_URL: "https://rpc.example.com",
  X402_FACILITATOR_URL: "https://facilitator.example.com",
  X402_ASSET: "11111111111111111111111111111111",
  X402_MAX_COMPUTE_UNITS: "200000",
  X402_MAX_PRIORITY_FEE: "50000",
  X402_QUOTE_SECONDS: "300",
  X402_REQUESTS_PER_MINUTE: "600",
  BODY_BUDGET_BYTES: "268435456",
  UPLOAD_BUDGET_BYTES: "2147483648",
  RATE_LIMIT_UPLOADS_PER_MINUTE: "120",
  RATE_LIMIT_CONCURRENT_UPLOADS: "10",
  BUYBACK_BPS: "100",
  BUYBACK_TOKEN: "11111111111111111111111111111111",
  BUYBACK_MINIMUM_USD: "5.00",
  BUYBACK_EXECUTOR: "jupiter",
  BUYBACK_SLIPPAGE_BPS: "100",
  JUPITER_BASE_URL: "https://jupiter.example.com/swap/v1",
};

test.each(["api", "worker"])("the %s's environment is complete once .env is filled in", (name) => {
  const filled = Object.fromEntries(example.map(([variable]) => [variable, "a-value-of-some-length"]));
  const env = Object.entries(compose.services[name]?.environment ?? {}).map(([variable, text]) => [
    variable,
    resolve(text, { ...filled, ...shaped }),
  ]);
  expect(() => loadConfig(Object.fromEntries(env) as Record<string, string>)).not.toThrow();
});

const givenTo = (service: string) => Object.keys(compose.services[service]?.environment ?? {});
const forUpstreams = upstreamVariables(loadCatalog(undefined)).map(({ name }) => name);

test("the keys of all upstreams are in the example, and compose passes them to workers alone", () => {
  const keys = forUpstreams.filter((name) => !name.endsWith("_BASE_URL"));
  expect(keys.length).toBeGreaterThan(10);
  const offered = example.map(([name]) => name);
  expect(keys.filter((name) => !offered.includes(name))).toEqual([]);
  expect(keys.filter((name) => !givenTo("worker").includes(name))).toEqual([]);
  expect(forUpstreams.filter((name) => givenTo("api").includes(name))).toEqual([]);
});

test("compose gives the same catalog to both processes, from a folder that both can read", () => {
  for (const name of ["CATALOG_FILE", "CATALOG_OVERLAY"]) {
    expect(example.map(([variable]) => variable)).toContain(name);
    const given = ["api", "worker"].map((service) => compose.services[service]?.environment?.[name]);
    expect(given).toEqual([`\${${name}:-}`, `\${${name}:-}`]);
  }
  for (const service of ["api", "worker"])
    expect(compose.services[service]?.volumes).toEqual(["./catalog:/service/catalog:ro"]);
});

const payments = Object.keys(environment.shape).filter((name) => /^(X402|SOLANA|BUYBACK|JUPITER)_/.test(name));

test("every setting of payments and buyback is in the example, and compose passes it to the process that reads it", () => {
  expect(
    example
      .map(([name]) => name)
      .filter((name) => payments.includes(name))
      .toSorted(),
  ).toEqual(payments.toSorted());
  expect(payments.filter((name) => ![...givenTo("api"), ...givenTo("worker")].includes(name))).toEqual([]);
});

test("only the API gets the settlement key, and only workers get the buyback key", () => {
  const secrets = ["X402_FEE_PAYER_KEY", "X402_FACILITATOR_TOKEN", "BUYBACK_WALLET_KEY", "JUPITER_API_KEY"];
  expect(secrets.map((name) => ["api", "worker"].filter((service) => givenTo(service).includes(name)))).toEqual([
    ["api"],
    ["api"],
    ["worker"],
    ["worker"],
  ]);
});

test("what compose requires from .env is in the example, without a value", () => {
  const required = [...readFileSync("docker-compose.yml", "utf8").matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name);
  const offered = example.map(([name]) => name);
  expect(required.filter((name) => !offered.includes(name as string))).toEqual([]);
  expect(example.filter(([, value]) => value !== "")).toEqual([]);
});

test("the files that the image copies and starts exist", () => {
  const dockerfile = readFileSync("infra/docker/Dockerfile", "utf8");
  const copied = [...dockerfile.matchAll(/^COPY (.+) \S+$/gm)].flatMap(([, files]) => (files as string).split(" "));
  const started = Object.values(compose.services).flatMap(({ command }) =>
    command?.[0] === "node" ? [command[1] as string] : [],
  );
  expect(started).toEqual(["api/main.ts", "workers/main.ts"]);
  expect([...copied, ...started].filter((file) => !existsSync(file))).toEqual([]);
});
