import type { SyntaxNode } from "@lezer/common";
import { parser } from "@prometheus-io/lezer-promql";
import { systemClock } from "../../shared/platform/clock.ts";
import { createMetrics, metricList } from "../../shared/platform/observability/metrics.ts";
import { samplesOf } from "./metrics.ts";

/** The labels of each series that Prometheus has of the service; those of histograms have three names. */
export async function knownSeries(): Promise<ReadonlyMap<string, readonly string[]>> {
  const metrics = createMetrics("api", systemClock);
  metrics.addRuntime();
  const scraped = ["job", "instance"];
  const series = new Map<string, readonly string[]>([["up", scraped]]);
  for (const name of samplesOf(await metrics.text()).names) series.set(name, scraped);
  for (const [name, { type, labels }] of Object.entries(metricList)) {
    const all = [...scraped, ...labels];
    if (type !== "histogram") series.set(name, all);
    else {
      series.set(`${name}_bucket`, [...all, "le"]);
      for (const suffix of ["sum", "count"]) series.set(`${name}_${suffix}`, all);
    }
  }
  return series;
}

export interface Uses {
  /** Each selector's metric, with the labels that it selects by. */
  readonly selectors: readonly { readonly metric: string; readonly labels: readonly string[] }[];
  /** Labels of `by`, `on`, and those that a join takes from the other side. */
  readonly grouping: readonly string[];
}

const within = (node: SyntaxNode, name: string): SyntaxNode[] => {
  const found: SyntaxNode[] = [];
  node.cursor().iterate((each) => {
    if (each.name === name && each.from >= node.from && each.to <= node.to) found.push(each.node);
  });
  return found;
};

/** The metrics and labels in an expression. Throws if it is not PromQL. Grafana's variables are filled in first. */
export function usesOf(expression: string): Uses {
  const text = expression.replaceAll("$__rate_interval", "5m").replaceAll("$__range", "3h");
  const { topNode } = parser.configure({ strict: true, top: "PromQL" }).parse(text);
  const textOf = ({ from, to }: SyntaxNode) => text.slice(from, to);
  return {
    selectors: within(topNode, "VectorSelector").map((selector) => ({
      metric: within(selector, "Identifier").map(textOf)[0] ?? "",
      labels: within(selector, "UnquotedLabelMatcher").map((each) => within(each, "LabelName").map(textOf)[0] ?? ""),
    })),
    grouping: within(topNode, "GroupingLabels").flatMap((each) => within(each, "LabelName").map(textOf)),
  };
}

/** The unknown metrics and labels in an expression, and in the labels shown for its result. */
export function faultsOf(
  expression: string,
  shown: readonly string[],
  known: ReadonlyMap<string, readonly string[]>,
): string[] {
  const { selectors, grouping } = usesOf(expression);
  const unknown = selectors.flatMap(({ metric, labels }) => {
    const has = known.get(metric);
    if (!has) return [metric];
    return labels.filter((label) => !has.includes(label)).map((label) => `${metric}{${label}}`);
  });
  const anywhere = selectors.flatMap(({ metric }) => known.get(metric) ?? []);
  return [
    ...(selectors.length === 0 ? ["no metric"] : []),
    ...unknown,
    ...[...grouping, ...shown].filter((label) => !anywhere.includes(label)),
  ];
}
