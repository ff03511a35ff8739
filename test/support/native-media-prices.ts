import { readFileSync } from "node:fs";
import type { Task } from "../../shared/catalog/index.ts";
import { images, media } from "./generation-setup.ts";

/** The fields of a shipped model that these tests read. */
export interface Shipped {
  readonly id: string;
  readonly task: Task;
  readonly elite_discount_bps?: number;
  readonly input_schema: {
    readonly required?: readonly string[];
    readonly properties: Readonly<Record<string, { readonly default?: unknown; readonly description?: string }>>;
  };
  readonly units: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly pricing: Readonly<Record<string, string>>;
  readonly variants?: readonly { readonly name: string; readonly pricing: Readonly<Record<string, string>> }[];
  readonly upstreams: readonly { readonly upstream: string; readonly model: string }[];
}
type PriceList = Pick<Shipped, "id" | "pricing" | "variants" | "elite_discount_bps">;
const catalog = JSON.parse(readFileSync(new URL("../../shared/catalog/models.json", import.meta.url), "utf8")) as {
  readonly elite_discount_bps: number;
  readonly models: readonly (Partial<Shipped> & { readonly id: string })[];
};

/** The image and media models that these providers serve. */
export const mediaModels: readonly Shipped[] = (catalog.models as readonly Shipped[]).filter(
  ({ task, upstreams }) =>
    task !== undefined && upstreams.some(({ upstream }) => /^(replicate|fal|gemini)$/.test(upstream)),
);

/** The price list of any model; token prices are per million tokens. */
export function priceListOf(id: string): PriceList {
  const found = catalog.models.find((model) => model.id === id);
  if (!found?.pricing) throw new Error(`the catalog has no ${id}`);
  return { ...found, pricing: found.pricing };
}

export function shipped(id: string): Shipped {
  const found = mediaModels.find((model) => model.id === id);
  if (!found) throw new Error(`the catalog has no ${id}`);
  return found;
}

/** In 10^-12 USD. */
function picoUsd(price: string): bigint {
  const [, whole = "", decimals = ""] = /^(\d+)(?:\.(\d{1,12}))?$/.exec(price) ?? [];
  return BigInt(whole + decimals.padEnd(12, "0"));
}

/** The cost at the shipped prices, in nano-USD: rounded once, half up. */
export function costOf(
  { id, pricing, variants = [], elite_discount_bps = catalog.elite_discount_bps }: PriceList,
  usage: Readonly<Record<string, number>>,
  { tier = "standard", variant }: { tier?: "standard" | "elite"; variant?: string } = {},
): bigint {
  const dearer = variants.find(({ name }) => name === variant);
  if (variant !== undefined && !dearer) throw new Error(`${id} has no variant ${variant}`);
  const prices = { ...pricing, ...dearer?.pricing };
  const counted = Object.entries(usage).map(
    ([key, count]) => BigInt(Math.round(count * 1e6)) * picoUsd(prices[key] ?? ""),
  );
  const share = tier === "elite" ? BigInt(10_000 - elite_discount_bps) : 10_000n;
  const [total, unit] = [counted.reduce((sum, each) => sum + each, 0n) * share, 10n ** 13n];
  return (total + unit / 2n) / unit;
}

/** The request of one model: its own fields are in the body itself, or in `input`. */
export const asking = ({ id, task }: Pick<Shipped, "id" | "task">, fields: object) =>
  task === "images"
    ? { path: images, body: { model: id, ...fields } }
    : { path: media, body: { model: id, input: fields } };
