// @ts-expect-error It has no types.
import parseText from "parse-prometheus-text-format";
import { z } from "zod";

const parse = parseText as (text: string) => unknown;

const families = z.array(
  z.object({
    name: z.string(),
    help: z.string(),
    type: z.string(),
    metrics: z.array(
      z.looseObject({ value: z.string().optional(), labels: z.record(z.string(), z.string()).optional() }),
    ),
  }),
);

/** The samples of each metric, as read by another implementation of Prometheus' format. */
export function samplesOf(text: string) {
  const byName = new Map(families.parse(parse(text)).map((family) => [family.name, family]));
  // The parser drops the labels of histograms. Without their types it reads `..._count` and `..._sum` unchanged.
  const untyped = families.parse(parse(text.replace(/^#.*\n/gm, "")));
  // The counts of a histogram with several labels are not adjacent: the parser reads them as several metrics.
  const byFamily = Map.groupBy(untyped, ({ name }) => name);
  const samples = new Map([...byFamily].map(([name, found]) => [name, found.flatMap(({ metrics }) => metrics)]));
  return {
    names: [...byName.keys()],
    help: (name: string) => byName.get(name)?.help,
    type: (name: string) => byName.get(name)?.type,
    labels: (name: string) => samples.get(name)?.map(({ labels = {} }) => labels) ?? [],
    /** The value of the sample with these labels. */
    value(name: string, labels: Readonly<Record<string, string>> = {}): number | undefined {
      const wanted = Object.entries(labels);
      const found = samples.get(name)?.find((each) => wanted.every(([key, of]) => each.labels?.[key] === of));
      return found?.value === undefined ? undefined : Number(found.value);
    },
  };
}

/** The metrics of the process at this address. */
export async function scrape(origin: string) {
  const response = await fetch(`${origin}/metrics`);
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status}: ${text}`);
  return samplesOf(text);
}
