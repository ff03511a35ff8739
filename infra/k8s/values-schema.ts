/**
 * The content of `infra/k8s/chart/values.schema.json`, which `npm run docs` writes from the configuration and the
 * catalog. Helm refuses other values.
 */
import { loadCatalog } from "#catalog";
import { pools } from "#jobs";
import { environment, secretVariables } from "#platform/config";

const catalog = loadCatalog(undefined);
const upstreams = [...catalog.upstreams.values()];
const named = (names: readonly (string | undefined)[]) => [...new Set(names.filter((name) => name !== undefined))];

/** Variables that only a Secret may hold and that not every process reads. */
const ofSome = {
  api: ["ADMIN_TOKEN", "ADMIN_TOKENS", "X402_FEE_PAYER_KEY", "X402_FACILITATOR_TOKEN", "CACHE_REDIS_URL"],
  workers: named(upstreams.map(({ apiKeyEnv }) => apiKeyEnv)),
  customers: ["SECRETS_PRIVATE_KEYS"],
  maintenance: ["BUYBACK_WALLET_KEY", "JUPITER_API_KEY"],
} as const;
const inAll = secretVariables.filter((name) => !Object.values<readonly string[]>(ofSome).flat().includes(name));
const secrets: Readonly<Record<"all" | keyof typeof ofSome, readonly string[]>> = { all: inAll, ...ofSome };
/** Variables that the templates set. */
const ofTemplates = /^(PORT|METRICS_(HOST|PORT)|CATALOG_(FILE|OVERLAY)|WORKER_(POOLS|CONCURRENCY_\w+))$/;
/** Settings that the templates also use. */
const numbers: Readonly<Record<string, Schema>> = {
  DRAIN_DELAY: { type: "number", minimum: 0 },
  DRAIN_GRACE: { type: "number", minimum: 0 },
  UPLOAD_BUDGET_BYTES: { type: "integer", minimum: 1 },
};

const variables = Object.entries(environment.shape);
const required = variables.filter(([, schema]) => !schema.safeParse(undefined).success).map(([name]) => name);
const requiredOf = (names: readonly string[]) => names.filter((name) => required.includes(name));
const ofAddresses = named(
  upstreams.flatMap(({ baseUrlEnv, addressEnv }) => [baseUrlEnv, ...Object.values(addressEnv)]),
);
const inConfig = [...variables.map(([name]) => name), ...ofAddresses].filter(
  (name) => !ofTemplates.test(name) && !Object.values(secrets).flat().includes(name),
);

type Schema = Readonly<Record<string, unknown>>;
const object = (properties: Readonly<Record<string, Schema>>, names: readonly string[] = []): Schema => ({
  type: "object",
  additionalProperties: false,
  ...(names.length > 0 && { required: names }),
  properties,
});
const fromEntries = (names: readonly string[], of: (name: string) => Schema) =>
  Object.fromEntries(names.map((name) => [name, of(name)]));
const map: Schema = { type: "object" };
const list: Schema = { type: "array" };
const someList: Schema = { ...list, minItems: 1 };
const text: Schema = { type: "string" };
const someText: Schema = { type: "string", minLength: 1 };
const flag: Schema = { type: "boolean" };
const atLeast = (minimum: number): Schema => ({ type: "integer", minimum });
const percent: Schema = { type: "integer", minimum: 1, maximum: 100 };

const secretsFrom = (names: readonly string[]) =>
  object(
    fromEntries(names, () => object({ name: someText, key: someText }, ["name", "key"])),
    requiredOf(names),
  );
const variable = (name: string): Schema => numbers[name] ?? { type: ["string", "number", "boolean"] };

/** A rule without peers would apply to all of them. */
const egress: Schema = { ...list, items: object({ ports: someList, to: someList }, ["ports", "to"]) };

const replicas = { minReplicas: atLeast(1), maxReplicas: atLeast(1) };
const worker = {
  replicas: atLeast(1),
  autoscaling: object({ enabled: flag, ...replicas, busyPercent: percent, waitingJobs: atLeast(1) }),
  resources: map,
  tmpSize: someText,
};
const pool: Schema = { ...object({ ...worker, concurrency: atLeast(1) }), type: ["object", "null"] };

/** Redis has one address, of three kinds. */
const redisAddresses: readonly Schema[] = [
  { properties: { secrets: { properties: { all: { required: ["REDIS_URL"] } } } } },
  ...["REDIS_SENTINELS", "REDIS_CLUSTER_NODES"].map((name) => ({ properties: { config: { required: [name] } } })),
];

export const valuesSchema: Schema = {
  $schema: "http://json-schema.org/draft-07/schema#",
  title: "Values of the chart: written by `npm run docs`, do not edit",
  oneOf: redisAddresses,
  ...object({
    global: map,
    image: object({ repository: someText, tag: text, digest: text, pullPolicy: text }),
    imagePullSecrets: list,
    config: object(fromEntries(inConfig, variable), [...requiredOf(inConfig), ...Object.keys(numbers)]),
    secrets: object(
      Object.fromEntries(Object.entries(secrets).map(([of, names]) => [of, secretsFrom(names)])),
      Object.keys(secrets),
    ),
    extraEnv: list,
    catalog: object({ configMap: text, file: text, overlay: text }),
    podAnnotations: map,
    podLabels: map,
    nodeSelector: map,
    tolerations: list,
    topologyKeys: { ...list, items: someText },
    serviceAccount: object({ name: text, annotations: map }),
    migrate: object({ enabled: flag, retries: atLeast(0), resources: map }),
    api: object({
      replicas: atLeast(1),
      autoscaling: object({ enabled: flag, ...replicas, cpuPercent: percent }),
      resources: map,
      service: object({ type: text, port: atLeast(1), annotations: map }),
    }),
    ingress: object({ enabled: flag, className: text, host: text, tlsSecret: text, annotations: map }),
    worker: object(worker),
    pools: object(
      fromEntries(pools, (name) => (name === "maintenance" ? { ...pool, type: "object" } : pool)),
      ["maintenance"],
    ),
    keda: object({
      enabled: flag,
      pollingSeconds: atLeast(1),
      prometheus: object({ serverAddress: text, selector: text, authentication: text, authModes: text }),
      redis: object({
        address: text,
        database: atLeast(0),
        tls: flag,
        secret: object({ name: text, usernameKey: text, passwordKey: text }),
      }),
    }),
    prometheus: object({ enabled: flag, intervalSeconds: atLeast(1), labels: map }),
    networkPolicy: object({
      enabled: flag,
      callers: list,
      prometheus: list,
      dns: someList,
      stores: egress,
      traces: egress,
      extraEgress: egress,
    }),
  }),
};
