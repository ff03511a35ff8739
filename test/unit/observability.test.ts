import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { metricList } from "#platform/observability/metrics";
import { faultsOf, knownSeries, usesOf } from "../support/promql.ts";

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
  const isOurs = (name: string) => /^(api|workers)\/main\.ts$/.test(services[name]?.command?.[1] ?? "");
  const ours = Object.keys(services).filter(isOurs);
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
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } };
  readonly targets?: readonly { readonly refId: string; readonly expr: string; readonly legendFormat: string }[];
}
interface Variable {
  readonly name: string;
  readonly definition: string;
  readonly query: { readonly query: string };
  readonly allValue: string;
}
interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly templating: { readonly list: readonly Variable[] };
  readonly panels: readonly Panel[];
}

const dashboards = readdirSync(join(folder, "dashboards")).map(
  (file) => [file, JSON.parse(readFileSync(join(folder, "dashboards", file), "utf8")) as Dashboard] as const,
);

test.each(dashboards)("%s asks for series and labels that exist", async (_, { panels, templating }) => {
  const known = await knownSeries();
  const targets = panels.flatMap((panel) => panel.targets ?? []);
  expect(targets.length).toBeGreaterThan(5);
  const variables = templating.list.map(({ name }) => name);
  const faults = targets.flatMap(({ expr, legendFormat }) => {
    const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = ""]) => label);
    const used = [...expr.matchAll(/\$(\w+)/g)].flatMap(([, name = ""]) => (name.startsWith("__") ? [] : [name]));
    return [
      ...faultsOf(expr, shown, known),
      ...used.filter((name) => !variables.includes(name) || !expr.includes(`=~"$${name}"`)),
    ].map((fault) => `${expr}: ${fault}`);
  });
  expect(faults).toEqual([]);
});

test.each(dashboards)(
  "the variables of %s have values from a label that exists, and are used",
  async (_, dashboard) => {
    const known = await knownSeries();
    const text = JSON.stringify(dashboard.panels);
    for (const { name, definition, query, allValue } of dashboard.templating.list) {
      const [, metric = "", label = ""] = /^label_values\((\w+), (\w+)\)$/.exec(definition) ?? [];
      expect([definition, query.query, known.get(metric)?.includes(label)]).toEqual([definition, definition, true]);
      expect([name, allValue, text.includes(`$${name}`)]).toEqual([name, ".*", true]);
    }
  },
);

test("the dashboards show every metric of the service but the catalog's hash", () => {
  const shown = new Set(
    dashboards.flatMap(([, { panels }]) =>
      panels.flatMap(({ targets = [] }) =>
        targets.flatMap(({ expr }) =>
          usesOf(expr).selectors.map(({ metric }) => metric.replace(/_(bucket|sum|count)$/, "")),
        ),
      ),
    ),
  );
  const missing = Object.keys(metricList).filter((name) => !shown.has(name));
  expect(missing).toEqual(["inference_catalog_info"]);
});

test.each(dashboards)(
  "%s has a file name that is its id, titles, and units that Grafana knows",
  (file, { uid, title, panels }) => {
    expect(`${uid}.json`).toBe(`inference-${file}`);
    expect(title).toMatch(/^Inference: /);
    const shown = panels.filter(({ type }) => type !== "row");
    const units = ["short", "s", "reqps", "ops", "percentunit", "bytes", "currencyUSD"];
    expect(shown.filter(({ fieldConfig }) => !units.includes(fieldConfig?.defaults.unit ?? ""))).toEqual([]);
    for (const { targets = [], title } of shown) {
      const ids = targets.map(({ refId }) => refId);
      expect([title, ids.length > 0, new Set(ids).size]).toEqual([title, true, ids.length]);
    }
  },
);

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
});

test("Prometheus loads the alerts from where compose mounts them", () => {
  const files = ["prometheus.yml", "alerts.yml"];
  expect(yaml(join(folder, "prometheus.yml"))).toMatchObject({ rule_files: ["alerts.yml"] });
  expect(services["prometheus"]?.volumes).toEqual(
    expect.arrayContaining(files.map((file) => `./${folder}/${file}:/etc/prometheus/${file}:ro`)),
  );
});
