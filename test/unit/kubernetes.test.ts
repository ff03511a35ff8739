import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { loadCatalog, upstreamVariables } from "#catalog";
import { pools } from "#jobs";
import { environment, loadConfig } from "#platform/config";
import { metricList } from "#platform/observability/metrics";
import { valuesSchema } from "../../infra/k8s/values-schema.ts";
import serviceManifest from "../../package.json" with { type: "json" };

/** The checks without Helm; `npm run check:chart` renders the chart. */

const folder = "infra/k8s/chart";
const yaml = (file: string) => parse(readFileSync(file, "utf8")) as Record<string, unknown>;
const templates = Object.fromEntries(
  readdirSync(join(folder, "templates")).map((file) => [file, readFileSync(join(folder, "templates", file), "utf8")]),
);
/** The Job of the migrations reads no more than the processes do. */
const all = Object.entries(templates)
  .map(([file, text]) => (file === "migrate.yaml" ? "" : text))
  .join("\n");
const values = yaml(join(folder, "values.yaml")) as {
  config: Record<string, number>;
  pools: Record<string, { concurrency: number }>;
};

interface Properties {
  readonly properties: Readonly<Record<string, Properties>>;
}
const { config, secrets } = (valuesSchema as unknown as Properties).properties as Record<
  "config" | "secrets",
  Properties
>;
const secretsOf = (processes: string) => Object.keys(secrets.properties[processes]?.properties ?? {});

/** `- { name: NAME, value: ... }`, in which a pool's variable has one name for each pool. */
const setByTemplates = [...all.matchAll(/- \{ name: ([A-Z_]+)(\{\{ upper \$pool \}\})?,/g)].flatMap(
  ([, name, ofPool]) => (ofPool ? pools.map((pool) => `${name}${pool.toUpperCase()}`) : [name as string]),
);

describe("variables", () => {
  test("the chart can set every variable of the service, each in one place, and no other", () => {
    const known = [
      ...Object.keys(environment.shape),
      ...upstreamVariables(loadCatalog(undefined)).map(({ name }) => name),
    ];
    const settable = [
      ...Object.keys(config.properties),
      ...Object.keys(secrets.properties).flatMap(secretsOf),
      ...setByTemplates,
    ];
    expect(settable.toSorted()).toEqual(known.toSorted());
  });

  test("secrets cannot be written into the values", () => {
    const suspects = Object.keys(config.properties).filter((name) => /(_KEY|_KEY_ID|_TOKEN|_URI|_SECRET)$/.test(name));
    expect(suspects).toEqual(["SECRETS_PUBLIC_KEY", "BUYBACK_TOKEN"]);
  });

  test("only the API gets the settlement key, and only one pool the buyback key", () => {
    expect(secretsOf("api")).toContain("X402_FEE_PAYER_KEY");
    expect(secretsOf("maintenance")).toContain("BUYBACK_WALLET_KEY");
    const maintenance =
      /\{\{- if eq \$pool "maintenance" \}\}\s+\{\{- include "inference.secrets" \$.Values.secrets.maintenance/;
    expect(templates["workers.yaml"]).toMatch(maintenance);
    expect(all.match(/secrets\.maintenance/g)).toHaveLength(1);
    const without = (pool: string, secret: string) =>
      new RegExp(
        `\\{\\{- if ne \\$pool "${pool}" \\}\\}\\s+\\{\\{- include "inference.secrets" \\$.Values.secrets.${secret} `,
      );
    expect(templates["workers.yaml"]).toMatch(without("webhooks", "workers"));
    expect(templates["workers.yaml"]).toMatch(without("maintenance", "customers"));
    expect(all.match(/secrets\.(customers|workers)/g)).toHaveLength(2);
    expect(all.match(/Values\.secrets\.api/g)).toHaveLength(1);
    expect(templates["api.yaml"]).toMatch(/Values\.secrets\.api/);
  });
});

describe("values", () => {
  const defaults = loadConfig({
    REDIS_URL: "redis://redis",
    MONGODB_URI: "mongodb://mongo",
    S3_ENDPOINT: "https://s3.example.com",
    S3_ACCESS_KEY_ID: "a",
    S3_SECRET_ACCESS_KEY: "b",
  });

  test("they have a Deployment for every pool, and the defaults of the service", () => {
    const concurrency = pools.map((pool) => [
      pool,
      defaults[`WORKER_CONCURRENCY_${pool.toUpperCase() as Uppercase<typeof pool>}`],
    ]);
    expect(Object.entries(values.pools).map(([pool, settings]) => [pool, settings.concurrency])).toEqual(concurrency);
    const { DRAIN_DELAY, DRAIN_GRACE, UPLOAD_BUDGET_BYTES } = defaults;
    expect(values.config).toEqual({ DRAIN_DELAY, DRAIN_GRACE, UPLOAD_BUDGET_BYTES });
    expect(yaml(join(folder, "Chart.yaml"))["appVersion"]).toBe(serviceManifest.version);
  });
});

describe("metrics", () => {
  test("the pools scale by metrics that every API instance has, by pool", () => {
    const named = [...(templates["keda.yaml"] ?? "").matchAll(/max\((inference_\w+)\{/g)].map(
      ([, name]) => name as string,
    );
    expect(new Set(named)).toEqual(new Set(["inference_pool_running", "inference_pool_free"]));
    for (const name of named)
      expect(metricList[name as keyof typeof metricList]).toMatchObject({ of: ["api"], labels: ["pool"] });
  });

  test("a label that the Prometheus operator also sets is not renamed", () => {
    const ofOperator = ["namespace", "service", "pod", "container", "endpoint", "job", "instance"];
    const labels = new Set(Object.values(metricList).flatMap((metric): readonly string[] => metric.labels));
    expect(ofOperator.filter((label) => labels.has(label))).toEqual(["endpoint"]);
    expect(templates["monitoring.yaml"]).toMatch(/^\s+honorLabels: true$/m);
  });
});
