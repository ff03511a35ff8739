import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { faultsOf, knownSeries } from "../support/promql.ts";

/** Checks that need no promtool; `npm run check:alerts` proves when each alert fires. */

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}
const file = "infra/observability/alerts.yml";
const { groups } = parse(readFileSync(file, "utf8")) as { groups: readonly { name: string; rules: readonly Rule[] }[] };
const { cases } = parse(readFileSync("infra/observability/alert-cases.yml", "utf8")) as { cases: readonly Rule[] };
const rules = groups.flatMap((group) => group.rules);
const names = rules.map(({ alert }) => alert);
const runbook = readFileSync("docs/operations/runbook.md", "utf8");

test.each(rules)("$alert asks for series and labels that exist", async ({ expr, annotations: { summary } }) => {
  const shown = [...summary.matchAll(/\{\{ \$labels\.(\w+) \}\}/g)].map(([, label = ""]) => label);
  expect(faultsOf(expr, shown, await knownSeries())).toEqual([]);
});

test("every alert has a runbook section with its meaning, impact, places to look and remedy, and every section has an alert", () => {
  const sections = runbook.split(/^### /m).slice(1);
  const described = sections.filter((section) => section.startsWith("Inference"));
  expect(described.map((section) => section.split("\n", 1)[0])).toEqual(names);
  for (const section of described) expect(section.match(/^- \*\*(\w+)/gm)).toHaveLength(4);
  for (const { alert, annotations } of rules)
    expect(annotations.runbook_url).toBe(`docs/operations/runbook.md#${alert.toLowerCase()}`);
});

test("every alert has a name and a severity that the runbook knows, and cases that promtool proves", () => {
  expect(new Set(names).size).toBe(names.length);
  for (const { alert, labels } of rules)
    expect([alert, ["critical", "warning"].includes(labels.severity)]).toEqual([alert, true]);
  expect([...new Set(cases.map(({ alert }) => alert))].toSorted()).toEqual(names.toSorted());
});

test("an expression that names nothing we have is found", async () => {
  const known = await knownSeries();
  expect(faultsOf("sum by (pool) (inference_pool_fre)", [], known)).toEqual(["inference_pool_fre", "pool"]);
  expect(faultsOf('rate(inference_calls_total{stats="1"}[5m])', ["pool"], known)).toEqual([
    "inference_calls_total{stats}",
    "pool",
  ]);
  expect(() => faultsOf("sum(up", [], known)).toThrow("No parse");
});
