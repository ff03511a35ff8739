import type { Model, Performance } from "../api/models.ts";
import { share } from "./format.ts";

/** Facts about models in words, and their order in the list. */

export const typeNames = {
  text: "Text",
  image: "Images",
  video: "Video",
  audio: "Audio",
  embeddings: "Embeddings",
  other: "Other",
} as const satisfies Readonly<Record<Model["type"], string>>;

const features: Readonly<Record<string, string>> = {
  tools: "Calls tools",
  json: "JSON by a schema",
  image: "Reads images",
  audio: "Reads recordings",
  file: "Reads PDFs",
  cache_retention: "Chooses how long its cache lives",
  logprobs: "Log probabilities",
  audio_output: "Speaks",
};
export const featureName = (feature: string): string => features[feature] ?? feature.replaceAll("_", " ");

/** A share just below 1 is not rounded to it. */
export const availabilityText = (availability: number): string => share(Math.floor(availability * 1000) / 1000);

/** The list price of the first item, such as input. */
function firstPrice({ x_pricing }: Model): { readonly unit: string; readonly usd: number } {
  const [first] = Object.values(x_pricing);
  return { unit: first?.unit ?? "", usd: Number(first?.list_usd ?? 0) };
}

export const orders = [
  { value: "catalog", label: "As in the catalog" },
  { value: "newest", label: "Newest" },
  { value: "price", label: "Lowest price" },
  { value: "context", label: "Longest context" },
  { value: "first-token", label: "Fastest first token" },
  { value: "name", label: "Name" },
] as const;
export type Order = (typeof orders)[number]["value"];

type Compare = (one: Model, other: Model) => number;
const byName: Compare = (one, other) => one.name.localeCompare(other.name);

/** Models with equal values keep the order of the catalog; those without a value come last. */
export function sorted(
  models: readonly Model[],
  order: Order,
  performance: ReadonlyMap<string, Performance>,
): readonly Model[] {
  const firstToken = ({ id }: Model) => performance.get(id)?.first_token_ms ?? Number.MAX_SAFE_INTEGER;
  const compare: Readonly<Record<Order, Compare | undefined>> = {
    catalog: undefined,
    newest: (one, other) => other.created - one.created,
    // Prices of different units cannot be compared, so each unit is a group of its own.
    price: (one, other) => {
      const [a, b] = [firstPrice(one), firstPrice(other)];
      return a.unit.localeCompare(b.unit) || a.usd - b.usd;
    },
    context: (one, other) => other.context_length - one.context_length,
    "first-token": (one, other) => firstToken(one) - firstToken(other),
    name: byName,
  };
  return compare[order] ? models.toSorted(compare[order]) : models;
}
