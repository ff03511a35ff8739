/**
 * `npm run check:alerts`: checks alerts.yml and prometheus.yml with Prometheus' own promtool, and runs its unit tests
 * of the rules from `alert-cases.yml`. Uses `PROMTOOL` or the promtool on the path (Debian: package `prometheus`); if
 * neither works, builds it once with Go.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parse } from "yaml";
import { cacheDirOf } from "../embedded/index.ts";

const version = "v0.315.0";
const folder = "infra/observability";
const rulesFile = join(folder, "alerts.yml");

type Labels = Readonly<Record<string, string>>;
interface Rule {
  readonly alert: string;
  readonly labels: Labels;
  readonly annotations: Labels;
}
interface Cases {
  readonly healthy: Labels;
  readonly quiet: readonly { readonly what: string; readonly series: Labels }[];
  readonly cases: readonly {
    readonly alert: string;
    readonly series: Labels | "absent";
    readonly labels?: readonly Labels[];
    readonly by: number;
    readonly notBefore?: number;
  }[];
}
const read = (file: string): unknown => parse(readFileSync(join(folder, file), "utf8"));
const { groups } = read("alerts.yml") as { groups: readonly { readonly rules: readonly Rule[] }[] };
const rules = new Map(groups.flatMap((group) => group.rules).map((rule) => [rule.alert, rule]));
const { healthy, quiet, cases } = read("alert-cases.yml") as Cases;
const absent = Object.fromEntries(Object.keys(healthy).map((name) => [name, "_x240"]));

function promtool(): string {
  const given = process.env["PROMTOOL"] ?? "promtool";
  if (spawnSync(given, ["--version"]).status === 0) return given;
  const built = join(cacheDirOf(process.env), `promtool-${version}`);
  if (existsSync(built)) return built;
  // Its module has `replace` directives, so `go install` refuses it.
  const env = { ...process.env, GOWORK: "off" };
  const download = ["mod", "download", "-json", `github.com/prometheus/prometheus@${version}`];
  const { Dir } = JSON.parse(execFileSync("go", download, { encoding: "utf8", env })) as { Dir: string };
  execFileSync("go", ["build", "-C", Dir, "-o", built, "./cmd/promtool"], { stdio: "inherit", env });
  return built;
}

/** Returns the alert in promtool's form: its labels, and its annotations with the labels filled in. */
function expected({ labels: own, annotations }: Rule, labels: Labels) {
  const filled = Object.entries(annotations).map(([name, text]) => [
    name,
    text.replace(/\{\{ \$labels\.(\w+) \}\}/g, (_, label: string) => labels[label] ?? ""),
  ]);
  return { exp_labels: { ...own, ...labels }, exp_annotations: Object.fromEntries(filled) };
}

const input = (series: Labels) =>
  Object.entries({ ...healthy, ...series }).map(([name, values]) => ({ series: name, values }));

const firing = (minutes: number, alerts: readonly (readonly [name: string, count: number])[]) => ({
  expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
  eval_time: `${minutes}m`,
  exp_samples: alerts.map(([name, count]) => ({ labels: `{alertname="${name}"}`, value: count })),
});

const tests = [
  { name: "a healthy service", input_series: input({}), promql_expr_test: [10, 60, 180].map((at) => firing(at, [])) },
  ...quiet.map(({ what, series }) => ({
    name: what,
    input_series: input(series),
    promql_expr_test: [15, 32, 45, 120].map((at) => firing(at, [])),
  })),
  ...cases.map(({ alert, series, labels = [{}], by, notBefore }) => {
    const rule = rules.get(alert);
    if (!rule) throw new Error(`alerts.yml has no ${alert}`);
    return {
      name: alert,
      input_series: input(series === "absent" ? absent : series),
      alert_rule_test: [
        { alertname: alert, eval_time: `${by}m`, exp_alerts: labels.map((each) => expected(rule, each)) },
      ],
      promql_expr_test: [
        ...(notBefore === undefined ? [] : [firing(notBefore, [])]),
        firing(by, [[alert, labels.length]]),
      ],
    };
  }),
];

const tool = promtool();
const temporary = mkdtempSync(join(tmpdir(), "inference-alerts-"));
let failed = false;
try {
  const run = (...args: readonly string[]) => {
    failed = spawnSync(tool, args, { stdio: "inherit" }).status !== 0 || failed;
  };
  run("check", "rules", rulesFile);
  // The configuration refers to the rules in its own folder, as in Compose.
  for (const file of ["alerts.yml", "prometheus.yml"]) copyFileSync(join(folder, file), join(temporary, file));
  run("check", "config", join(temporary, "prometheus.yml"));
  const file = join(temporary, "alerts.test.yml");
  writeFileSync(
    file,
    JSON.stringify({
      rule_files: [resolve(rulesFile)],
      evaluation_interval: "1m",
      tests: tests.map((test) => ({ interval: "1m", ...test })),
    }),
  );
  run("test", "rules", file);
  process.stdout.write(`${rules.size} alerts, ${tests.length} tests\n`);
} finally {
  rmSync(temporary, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
