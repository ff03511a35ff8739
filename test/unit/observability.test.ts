import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { systemClock } from "#platform/clock";
import { createMetrics, metricList } from "#platform/metrics";
import { samplesOf } from "../support/metrics.ts";

const folder = "infra/observability";
const yaml = (file: string) => parse(readFileSync(file, "utf8"), { merge: true }) as unknown;

interface Compose {
  readonly services: Readonly<
    Record<string, { readonly expose?: readonly string[]; readonly volumes?: readonly string[]; command?: string[] }>
  >;
}
const { services } = yaml("docker-compose.yml") as Compose;

interface Prometheus {
  readonly scrape_configs: readonly {
    readonly job_name: string;
    readonly dns_sd_configs: readonly {
      readonly names: readonly string[];
      readonly type: string;
      readonly port: number;
    }[];
  }[];
}
const jobs = (yaml(join(folder, "prometheus.yml")) as Prometheus).scrape_configs;

test("Prometheus scrapes the API and every worker of compose on the port of their metrics", () => {
  const targets = jobs.flatMap(({ dns_sd_configs }) => dns_sd_configs.flatMap(({ names }) => names));
  const ours = Object.keys(services).filter((name) => services[name]?.command?.[0] === "node");
  expect(targets.toSorted()).toEqual(ours.toSorted());
  for (const { port, type } of jobs.flatMap((job) => job.dns_sd_configs)) {
    expect(type).toBe("A");
    for (const name of ours) expect(services[name]?.expose).toEqual([`${port}`]);
  }
});

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly datasource?: { readonly uid: string };
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}
interface Dashboard {
  readonly uid: string;
  readonly panels: readonly Panel[];
}

const dashboards = readdirSync(join(folder, "dashboards")).map(
  (file) => [file, JSON.parse(readFileSync(join(folder, "dashboards", file), "utf8")) as Dashboard] as const,
);

/** The labels of each series that a scrape has; those of histograms have three. */
async function knownSeries(): Promise<Map<string, readonly string[]>> {
  const metrics = createMetrics("api", systemClock);
  metrics.addRuntime();
  const runtime = samplesOf(await metrics.text());
  const scraped = ["job", "instance"];
  const series = new Map(runtime.names.map((name) => [name, scraped] as const) as [string, readonly string[]][]);
  for (const [name, { type, labels }] of Object.entries(metricList)) {
    const all = [...scraped, ...labels];
    if (type !== "histogram") series.set(name, all);
    else
      for (const [suffix, more] of [
        ["bucket", ["le"]],
        ["sum", []],
        ["count", []],
      ] as const)
        series.set(`${name}_${suffix}`, [...all, ...more]);
  }
  return series.set("up", scraped);
}

const keywords = /^(sum|max|min|avg|count|topk|rate|histogram_quantile|absent|by|clamp_min)$/;

/** The series of an expression with the labels that it selects or groups by. */
function usesOf(expression: string) {
  const plain = expression.replace(/"[^"]*"/g, '""').replace(/\[[^\]]*\]/g, "");
  const grouped = [...plain.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, labels = ""]) => labels.split(/,\s*/));
  const selected = [...plain.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*""/g)].map(([, label = ""]) => label);
  const names = plain
    .replace(/\{[^}]*\}/g, "")
    .replace(/\bby \([^)]*\)/g, "")
    .match(/[a-zA-Z_]\w*/g);
  return { names: (names ?? []).filter((name) => !keywords.test(name)), labels: [...grouped, ...selected] };
}

test.each(dashboards)("%s asks for series and labels that exist", async (_, { panels }) => {
  const known = await knownSeries();
  const targets = panels.flatMap((panel) => panel.targets ?? []);
  expect(targets.length).toBeGreaterThan(20);
  for (const { expr, legendFormat } of targets) {
    const { names, labels } = usesOf(expr);
    expect([expr, names.length > 0, names.filter((name) => !known.has(name))]).toEqual([expr, true, []]);
    const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = ""]) => label);
    for (const name of names)
      expect([expr, [...labels, ...shown].filter((label) => !known.get(name)?.includes(label))]).toEqual([expr, []]);
  }
});

test("the dashboards show every metric of the service but the catalog's hash", () => {
  const shown = dashboards.flatMap(([, { panels }]) =>
    panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  );
  const missing = Object.keys(metricList).filter((name) => !shown.some((expr) => expr.includes(name)));
  expect(missing).toEqual(["inference_catalog_info"]);
});

test.each(dashboards)(
  "the panels of %s do not overlap, have ids of their own and the data source that is provided",
  (_, dashboard) => {
    const { panels } = dashboard;
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, n) => `${x + (n % w)},${y + Math.floor(n / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    const sources = yaml(join(folder, "grafana/datasources/prometheus.yml")) as {
      datasources: { uid: string; url: string }[];
    };
    const [source] = sources.datasources;
    expect(new Set(panels.flatMap(({ datasource }) => datasource?.uid ?? []))).toEqual(new Set([source?.uid]));
    expect(services).toHaveProperty(new URL(source?.url ?? "").hostname);
  },
);

test("Grafana reads the dashboards from where compose mounts them", () => {
  const { providers } = yaml(join(folder, "grafana/dashboards/inference.yml")) as {
    providers: { options: { path: string } }[];
  };
  expect(services["grafana"]?.volumes).toEqual(
    expect.arrayContaining([
      `./${folder}/dashboards:${providers[0]?.options.path}:ro`,
      `./${folder}/grafana:/etc/grafana/provisioning:ro`,
    ]),
  );
  expect(services["prometheus"]?.volumes).toContain(`./${folder}/prometheus.yml:/etc/prometheus/prometheus.yml:ro`);
});
