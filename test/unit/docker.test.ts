import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { loadCatalog, upstreamVariables } from "#catalog";
import { callPools, pools } from "#jobs";
import { environment, loadConfig, secretVariables } from "#platform/config";
import { nodeArgs } from "../../infra/embedded/index.ts";

interface Service {
  readonly image?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly command?: readonly string[];
  readonly volumes?: readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly restart?: string;
  readonly mem_limit?: string;
  readonly networks?: readonly string[];
  readonly stop_grace_period?: string;
  readonly secrets?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
}
interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly secrets?: Readonly<Record<string, { readonly file: string }>>;
}
const composeOf = (file: string) => parse(readFileSync(file, "utf8"), { merge: true }) as Compose;

const compose = composeOf("docker-compose.yml");
const text = readFileSync("docker-compose.yml", "utf8");
const programs = Object.entries(compose.services).filter(([, { command }]) => command?.[0] === "node");
/** The long-running programs; the other one is a single command. */
const ours = programs.filter(([name]) => name !== "migrate");
const workers = ours.filter(([, { command }]) => command?.[1] === "workers/main.ts");
const givenTo = (service: string) => Object.keys(compose.services[service]?.environment ?? {});

const upstreams = upstreamVariables(loadCatalog(undefined));
/** Every process has them: workers of webhooks check customers' own keys there. */
const addresses = upstreams.filter(({ name }) => name.endsWith("_BASE_URL"));
const secrets = [...secretVariables, ...upstreams.flatMap(({ name, secret }) => (secret ? [name] : []))];
const known = [
  ...Object.keys(environment.shape),
  ...upstreams.map(({ name }) => name),
  ...secrets.map((name) => `${name}_FILE`),
];
/** A variable may be commented out if its default is not empty. */
const example = readFileSync(".env.example", "utf8")
  .split("\n")
  .filter((line) => /^#?[A-Z0-9_]+=/.test(line))
  .map((line) => line.replace("#", "").split("=", 2) as [string, string]);
const offered = example.map(([name]) => name);

/** Expands `${NAME:-default}` and `${NAME:?why}` as compose does from the given variables. */
const resolve = (text: string, from: Readonly<Record<string, string>>): string => {
  // Start with the innermost: a default may have variables.
  const resolved = text.replace(
    /\$\{(\w+)(?::?-([^{}]*)|:?\?[^{}]*)?\}/g,
    (_, name: string, initial?: string) => from[name] || initial || "",
  );
  return resolved === text ? text : resolve(resolved, from);
};

test("compose passes every variable of the service to a process, and none that nothing reads", () => {
  const given = new Set(ours.flatMap(([name]) => givenTo(name)));
  expect(known.filter((name) => !given.has(name))).toEqual([]);
  expect([...given].filter((name) => !known.includes(name))).toEqual([]);
});

test("compose passes the variable of the same name, and nothing if it is not set", () => {
  const fixed = ["HOST", "PORT", "METRICS_HOST", "METRICS_PORT", "WORKER_POOLS"];
  const bundled = ["REDIS_URL", "CACHE_REDIS_URL", "MONGODB_URI", "S3_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
  const shape = (name: string): RegExp => {
    if (fixed.includes(name)) return /^[^$]+$/;
    const initial = bundled.includes(name) ? ":?-.+" : ":-";
    return new RegExp(`^\\$\\{${name}${initial}\\}$`);
  };
  const passed = ours.flatMap(([, service]) => Object.entries(service.environment ?? {}));
  expect(passed.filter(([name, value]) => !shape(name).test(value))).toEqual([]);
});

/** The pools whose workers call providers. */
const providerPools = pools.filter((pool) => pool === "batches" || callPools.some((each) => each === pool));

test("each pool has a separate service, which gets every setting and the keys of upstreams", () => {
  expect(workers.map(([name, service]) => [name, service.environment?.["WORKER_POOLS"]])).toEqual(
    pools.map((pool) => [pool, pool]),
  );
  const settings = Object.keys(environment.shape).filter((name) => !secretVariables.includes(name));
  for (const [name] of ours)
    expect(settings.filter((each) => !givenTo(name).includes(each))).toEqual(name === "api" ? ["WORKER_POOLS"] : []);
  const needed = (name: string) => (providerPools.some((pool) => pool === name) ? upstreams : addresses);
  for (const [name] of workers) expect(needed(name).filter((each) => !givenTo(name).includes(each.name))).toEqual([]);
});

test("every process can read the folder of the catalog's files", () => {
  for (const [name, { volumes }] of ours) expect([name, volumes]).toEqual([name, ["./catalog:/service/catalog:ro"]]);
});

test("a secret reaches the processes that use it, and no other", () => {
  const holders = (variable: string) => ours.flatMap(([name]) => (givenTo(name).includes(variable) ? [name] : []));
  const everyone = ["api", ...pools];
  const ofApi = ["CACHE_REDIS_URL", "ADMIN_TOKEN", "ADMIN_TOKENS", "X402_FEE_PAYER_KEY", "X402_FACILITATOR_TOKEN"];
  const expected = (name: string) => {
    if (ofApi.includes(name)) return ["api"];
    if (name === "SECRETS_PRIVATE_KEYS") return pools.filter((pool) => pool !== "maintenance");
    if (["BUYBACK_WALLET_KEY", "JUPITER_API_KEY"].includes(name)) return ["maintenance"];
    return secretVariables.includes(name) ? everyone : [...providerPools];
  };
  for (const name of secrets)
    expect([name, holders(name), holders(`${name}_FILE`)]).toEqual([name, expected(name), expected(name)]);
});

test.each(ours)("the environment of %s is complete once the first lines of .env are filled in", (_, service) => {
  const filled = Object.fromEntries(
    example.slice(0, 6).map(([name]) => [name, "a-value-of-some-length-for-everything"]),
  );
  const env = Object.entries(service.environment ?? {}).map(([name, value]) => [name, resolve(value, filled)] as const);
  const pool = service.environment?.["WORKER_POOLS"];
  expect(loadConfig(Object.fromEntries(env))).toMatchObject({
    S3_ACCESS_KEY_ID: "a-value-of-some-length-for-everything",
    ...(pool === undefined ? { ADMIN_TOKEN: "a-value-of-some-length-for-everything" } : { WORKER_POOLS: pool }),
  });
});

test("the example offers every variable that compose reads, and no other, without values", () => {
  const read = new Set([...text.matchAll(/\$\{(\w+)/g)].map(([, name = ""]) => name));
  expect(offered.filter((name) => !read.has(name))).toEqual([]);
  expect([...read].filter((name) => !offered.includes(name))).toEqual([]);
  expect(new Set(offered).size).toBe(offered.length);
  expect(example.filter(([, value]) => value !== "")).toEqual([]);
});

test("every service has a health check and restarts, and waits for healthy stores", () => {
  for (const [name, { healthcheck, restart }] of Object.entries(compose.services).filter(
    ([name]) => name !== "migrate",
  ))
    expect([name, healthcheck?.test[0], restart]).toEqual([name, "CMD", "unless-stopped"]);
  const healthy = { condition: "service_healthy" };
  const migrate = { condition: "service_completed_successfully" };
  for (const [, service] of ours)
    expect(service.depends_on).toEqual({ redis: healthy, mongo: healthy, s3: healthy, migrate });
  expect(compose.services["migrate"]).toMatchObject({ restart: "on-failure", depends_on: { mongo: healthy } });
  expect(givenTo("migrate")).toEqual(["MONGODB_URI", "MONGODB_URI_FILE", "LOG_LEVEL"]);
});

test("a process has time to drain before it is killed", () => {
  const { DRAIN_DELAY, DRAIN_GRACE } = environment.shape;
  const drainSeconds = DRAIN_DELAY.parse(undefined) + DRAIN_GRACE.parse(undefined);
  const settleSeconds = 25;
  for (const [, { stop_grace_period = "" }] of ours)
    expect(Number.parseInt(resolve(stop_grace_period, {}), 10)).toBeGreaterThan(drainSeconds + settleSeconds);
});

test("only our processes share a network with the stores, and every service has a limit of memory", () => {
  const services = Object.entries(compose.services);
  const on = (network: string) =>
    services.flatMap(([name, { networks }]) => (networks?.includes(network) ? [name] : []));
  const processes = ["api", ...pools];
  expect(new Set(on("stores"))).toEqual(new Set(["migrate", ...processes, "redis", "cache", "mongo", "s3"]));
  expect(new Set(on("observability"))).toEqual(new Set([...processes, "prometheus", "jaeger", "grafana"]));
  expect(services.filter(([, { mem_limit = "" }]) => !/^\d+[mg]$/.test(mem_limit))).toEqual([]);
});

test("the stores ask for the passwords that the addresses of the processes have", () => {
  const filled = { VALKEY_PASSWORD: "of-valkey", MONGODB_PASSWORD: "of-mongodb" };
  const { api, redis, cache, mongo } = compose.services;
  const addressOf = (name: string) => new URL(resolve(api?.environment?.[name] ?? "", filled));
  expect(addressOf("REDIS_URL")).toMatchObject({ hostname: "redis", password: "of-valkey" });
  expect(addressOf("CACHE_REDIS_URL")).toMatchObject({ hostname: "cache", password: "of-valkey" });
  for (const store of [redis, cache])
    expect(store?.command?.slice(-2).map((each) => resolve(each, filled))).toEqual(["--requirepass", "of-valkey"]);
  const { MONGO_INITDB_ROOT_USERNAME: user, MONGO_INITDB_ROOT_PASSWORD = "" } = mongo?.environment ?? {};
  expect(addressOf("MONGODB_URI")).toMatchObject({ username: user, password: "of-mongodb" });
  expect(resolve(MONGO_INITDB_ROOT_PASSWORD, filled)).toBe("of-mongodb");
  expect(mongo?.command).toContain("--keyFile");
});

test("Redis evicts nothing and writes every change to disk", () => {
  const command = compose.services["redis"]?.command?.join(" ");
  expect(command).toContain("--appendonly yes");
  expect(command).toContain("--maxmemory-policy noeviction");
});

test("the Redis of the response cache evicts before its container is full, and has no volume", () => {
  const { command, mem_limit, volumes } = compose.services["cache"] as Service;
  expect(command?.join(" ")).toContain("--maxmemory 512mb --maxmemory-policy allkeys-lru");
  expect([mem_limit, volumes]).toEqual(["1g", undefined]);
});

test("the secrets of the override are defined, and mounted where their variables are read", () => {
  const override = composeOf("docker-compose.secrets.yml");
  const defined = Object.keys(override.secrets ?? {});
  const mounted = Object.entries(override.services).map(([name, service]) => [name, service.secrets ?? []] as const);
  expect(new Set(mounted.flatMap(([, names]) => names))).toEqual(new Set(defined));
  for (const [name, names] of mounted.filter(([name]) => name !== "s3"))
    expect(names.filter((each) => !givenTo(name).includes(`${each.toUpperCase()}_FILE`))).toEqual([]);
});

test("the files that the image copies and starts exist, it does not run as root, and Node has the arguments of the scripts", () => {
  const dockerfile = readFileSync("infra/docker/Dockerfile", "utf8");
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, files]) =>
    (files as string).split(" "),
  );
  const started = [...new Set(programs.map(([, { command }]) => command?.[1] as string))];
  expect(started).toEqual(["infra/cli/migrate.ts", "api/main.ts", "workers/main.ts"]);
  expect([...copied, ...started].filter((file) => !existsSync(file))).toEqual([]);
  expect(dockerfile).toMatch(/^USER node$/m);
  const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> };
  const args = nodeArgs.join(" ");
  expect(dockerfile).toContain(` NODE_OPTIONS=${args}\n`);
  expect([scripts["api"], scripts["worker"]]).toEqual(
    ["api", "workers"].map((folder) => `exec node ${args} ${folder}/main.ts`),
  );
});
