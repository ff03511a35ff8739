import type { Model } from "../api/models.ts";
import { capitalized } from "./format.ts";

export interface PriceRow {
  readonly key: string;
  /** The item, such as `Cached input`, or `1080p` for `second_1080p`. Undefined if the unit alone says it. */
  readonly what: string | undefined;
  /** A name such as `input`, with its condition, if any: `input, above 200,000 tokens`. */
  readonly name: string;
  /** A unit such as `1M tokens`. */
  readonly unit: string;
  readonly listUsd: string;
  readonly eliteUsd: string;
}

export function priceName(key: string): string {
  const [, base = key, limit] = /^(.*)_above_(\d+)$/.exec(key) ?? [];
  const name = base.replaceAll("_", " ");
  return limit === undefined ? name : `${name}, above ${Number(limit).toLocaleString("en-US")} tokens`;
}

function whatOf(key: string, unit: string): string | undefined {
  return key === unit ? undefined : capitalized(priceName(key.replace(`${unit}_`, "")));
}

export const unitName = (unit: string): string => unit.replaceAll("_", " ");

export const priceRows = (model: Pick<Model, "x_pricing">): readonly PriceRow[] =>
  Object.entries(model.x_pricing).map(([key, { unit, list_usd, elite_usd }]) => ({
    key,
    what: whatOf(key, unit),
    name: priceName(key),
    unit: unitName(unit),
    listUsd: list_usd,
    eliteUsd: elite_usd,
  }));
