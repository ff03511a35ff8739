import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { publicKeyOf } from "#secrets";
import { type ConfigReport, checkConfig } from "../../infra/cli/config-check.ts";
import { runProgram, temporaryFolder } from "../support/program.ts";

type Env = Readonly<Record<string, string>>;

const check = (env: Env, ...options: string[]) => runProgram(["infra/cli/config.ts", "check", ...options], env);

/** Unused addresses: the check connects to nothing. */
const stores = {
  REDIS_URL: "redis://:hunter2@127.0.0.1:1",
  MONGODB_URI: "mongodb://user:hunter2@127.0.0.1:1/none",
  S3_ENDPOINT: "http://127.0.0.1:1",
  S3_ACCESS_KEY_ID: "hunter2",
  S3_SECRET_ACCESS_KEY: "hunter2",
};

test("shows the settings, their sources, the upstreams with keys, and likely typos, without a secret", async () => {
  const FAL_KEY_FILE = join(await temporaryFolder(), "fal");
  await writeFile(FAL_KEY_FILE, "hunter2-fal\n");
  const typos = {
    OPENAI_APIKEY: "hunter2",
    ANTHROPIC_KEY: "hunter2",
    X402_FEE_PAYER_KEYS: "hunter2",
    REDIS_URI: "hunter2",
    HOSTNAME: "box",
  };
  const env = {
    ...stores,
    ...typos,
    PORT: "1234",
    LOG_LEVEL: "",
    LOCAL_MODELS: "true",
    OPENAI_API_KEY: "",
    GEMINI_API_KEY: "hunter2",
    GEMINI_BASE_URL: "https://user:hunter2@gemini.test/v1",
    FAL_KEY_FILE,
  };
  const [{ code, out, err }, json] = await Promise.all([check(env), check(env, "--json")]);
  expect([code, err]).toEqual([0, ""]);
  expect(out).not.toContain("hunter2");
  const lines = out.split("\n").map((line) => line.trim().split(/ {2,}/));
  expect(lines).toEqual(
    expect.arrayContaining([
      ["REDIS_URL", "***"],
      ["S3_ENDPOINT", "http://127.0.0.1:1"],
      ["PORT", "1234"],
      ["GEMINI_BASE_URL", "https://***@gemini.test/v1"],
      ["FAL_KEY", "***", FAL_KEY_FILE],
      ["openai", "no key", "OPENAI_API_KEY"],
      ["gemini", "ready", "GEMINI_API_KEY"],
      ["fal", "ready", "FAL_KEY"],
      ["local", "ready"],
      ["Nothing reads OPENAI_APIKEY. Did you mean OPENAI_API_KEY?"],
    ]),
  );
  expect(out).not.toContain("LOG_LEVEL");
  const report = JSON.parse(json.out) as ConfigReport;
  expect([json.code, report.ok]).toEqual([0, true]);
  expect(report.unknown).toEqual([
    { name: "OPENAI_APIKEY", did_you_mean: "OPENAI_API_KEY" },
    { name: "ANTHROPIC_KEY", did_you_mean: "ANTHROPIC_API_KEY" },
    { name: "X402_FEE_PAYER_KEYS", did_you_mean: "X402_FEE_PAYER_KEY" },
    { name: "REDIS_URI", did_you_mean: "REDIS_URL" },
  ]);
  expect(report.upstreams.filter(({ state }) => state === "ready").map(({ id }) => id)).toEqual([
    "local",
    "gemini",
    "fal",
  ]);
});

const keyOf = (letter: string) => Buffer.from(letter.repeat(32)).toString("base64");

/** Each fault makes a start fail, in a later step of the check than the previous one. */
const faulty: readonly [what: string, change: Env, api: string[], worker?: string[]][] = [
  ["a missing store", { REDIS_URL: "" }, ["REDIS_URL is missing"]],
  ["two addresses of Redis", { REDIS_CLUSTER_NODES: "redis:6379" }, ["REDIS_URL and REDIS_CLUSTER_NODES are set"]],
  [
    "another database of the queues' Redis for the cache",
    { REDIS_URL: "redis://cache", CACHE_REDIS_URL: "redis://:hunter2@cache:6379/1" },
    ["CACHE_REDIS_URL: must be another server"],
  ],
  [
    "a node of the queues' cluster for the cache",
    { REDIS_URL: "", REDIS_CLUSTER_NODES: "[::1]:6379,[::1]:6380", CACHE_REDIS_URL: "redis://[::1]:6380" },
    ["CACHE_REDIS_URL: must be another server"],
  ],
  [
    "a sentinel without its port",
    { REDIS_URL: "", REDIS_SENTINELS: "sentinel-1:26379,sentinel-2" },
    ["REDIS_SENTINELS: must be host:port"],
  ],
  [
    "a trusted proxy that is every address",
    { TRUSTED_PROXIES: "10.0.0.0/8,::/0" },
    ["TRUSTED_PROXIES: must be addresses or CIDR blocks, other than /0"],
  ],
  [
    "a proxy of webhooks beside networks that only its own rules can open",
    { WEBHOOK_PROXY_URL: "http://proxy:4750", WEBHOOK_ALLOWED_NETWORKS: "10.0.0.0/8" },
    ["WEBHOOK_PROXY_URL and WEBHOOK_ALLOWED_NETWORKS are set"],
  ],
  [
    "a proxy of webhooks with a path",
    { WEBHOOK_PROXY_URL: "http://proxy:4750/a" },
    ["WEBHOOK_PROXY_URL: must be a URL without a path"],
  ],
  [
    "a secret's file that is missing",
    { ADMIN_TOKEN_FILE: "/nowhere", MONGODB_URI: "", MONGODB_URI_FILE: "/nowhere" },
    ["MONGODB_URI_FILE: /nowhere cannot be read", "ADMIN_TOKEN_FILE: /nowhere cannot be read"],
  ],
  ["a catalog that is missing", { CATALOG_FILE: "/nowhere" }, ["The catalog /nowhere"]],
  [
    "payments that nobody settles",
    { X402_PAY_TO: "11111111111111111111111111111111", SOLANA_RPC_URL: "https://rpc.test" },
    ["X402_FEE_PAYER_KEY or X402_FACILITATOR_URL is missing"],
    [],
  ],
  [
    "keys that are no pair",
    { SECRETS_PUBLIC_KEY: publicKeyOf(keyOf("a")), SECRETS_PRIVATE_KEYS: keyOf("b") },
    ["SECRETS_PUBLIC_KEY: does not belong to a key of SECRETS_PRIVATE_KEYS"],
  ],
  ["a key that is too short", { SECRETS_PRIVATE_KEYS: "YQ==" }, ["SECRETS_PRIVATE_KEYS: must be 32 bytes in base64"]],
  ["a pool that does not exist", { WORKER_POOLS: "chat,cats" }, [], ["WORKER_POOLS: there is no pool 'cats'"]],
  [
    "a buyback without its wallet",
    { BUYBACK_EXECUTOR: "jupiter", WORKER_POOLS: "maintenance" },
    [],
    ["BUYBACK_WALLET_KEY is missing"],
  ],
  [
    "upstreams' keys and addresses",
    { GROQ_API_KEY_FILE: "/nowhere", XAI_API_KEY: "x", XAI_BASE_URL: "ftp://x", FAL_KEY: "x", FAL_BASE_URL: "x" },
    [],
    ["GROQ_API_KEY_FILE: /nowhere cannot be read", "XAI_BASE_URL: not an http", "FAL_BASE_URL: not an http"],
  ],
];

test.each(faulty)("finds %s, for the processes that refuse it", async (_, change, api, worker = api) => {
  const beginningWith = (faults: string[]) => faults.map((fault) => expect.stringContaining(fault) as string);
  const env = { ...stores, ...change };
  expect((await checkConfig(env, ["api"])).faults).toEqual(beginningWith(api));
  expect((await checkConfig(env, ["worker"])).faults).toEqual(beginningWith(worker));
});

test("prints a pair of keys that a start accepts", async () => {
  const { code, out } = await runProgram(["infra/cli/config.ts", "keys"], {});
  const keys = Object.fromEntries(
    out
      .trimEnd()
      .split("\n")
      .map((line) => line.split(/=(.*)/s).slice(0, 2)),
  );
  expect([code, Object.keys(keys)]).toEqual([0, ["SECRETS_PUBLIC_KEY", "SECRETS_PRIVATE_KEYS"]]);
  expect((await checkConfig({ ...stores, ...keys }, ["worker"])).faults).toEqual([]);
});

test("finds all faults at once, and none that only follows from another", async () => {
  const invalid = { S3_ENDPOINT: "s3", PORT: "many", X402_PAY_TO: "me", WORKER_POOLS: "chat,cats", XAI_API_KEY: "x" };
  const { code, out, err } = await check({ ...stores, ...invalid, XAI_BASE_URL: "x", SOLANA_RPC_URL: "x" });
  expect([code, out]).toEqual([1, expect.stringContaining("VARIABLE")]);
  const [, head, ...faults] = err.trimEnd().split("\n");
  expect(head).toBe("The configuration is not valid.");
  expect(faults.map((fault) => fault.trim().split(":")[0])).toEqual([
    "S3_ENDPOINT",
    "PORT",
    "X402_PAY_TO",
    "SOLANA_RPC_URL",
    "WORKER_POOLS",
    "XAI_BASE_URL",
  ]);
});

test.each(["api/main.ts", "workers/main.ts"] as const)(
  "%s refuses to start in the words of the check",
  async (main) => {
    const env = { ...stores, ADMIN_TOKEN_FILE: "/nowhere" };
    const [started, checked] = await Promise.all([runProgram([main], env), check(env)]);
    expect([started.code, started.err]).toEqual([1, checked.err.trimStart()]);
  },
);
