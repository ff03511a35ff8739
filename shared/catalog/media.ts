import type { ModelInput } from "#formats";
import { costAt, type Prices } from "./prices.ts";
import type { Bound, Condition, Media, Model, Tier, Usage } from "./types.ts";
import { billed, type Input, mediaOf, valueOf } from "./units.ts";

function meets({ schema }: Media, input: Input, field: string, condition: Condition): boolean {
  const value = valueOf(schema, input, field);
  if ("present" in condition) return condition.present === (value !== undefined);
  return condition.some((each) => each === value);
}

function pricesFor(model: Model, tier: Tier, input: Input | undefined): Prices {
  const base = model.prices[tier][0].prices;
  const media = mediaOf(model);
  if (media.variants.length === 0) return base;
  if (input === undefined) throw new TypeError(`The cost of ${model.id} depends on its input`);
  const fitting = media.variants.filter(({ when }) =>
    Object.entries(when).every(([field, condition]) => meets(media, input, field, condition)),
  );
  // The first that fits and names a price key is the last to write it.
  return Object.assign({}, base, ...fitting.reverse().map(({ prices }) => prices[tier]));
}

export const costOfMedia = (model: Model, usage: Usage, tier: Tier, input: Input | undefined): bigint =>
  costAt(pricesFor(model, tier, input), billed(model, usage, input));

export function boundOfUnits(model: Model, input: ModelInput["value"], units: Usage, tier: Tier): Bound {
  const nanoUsd = costOfMedia(model, units, tier, input);
  // All or nothing: no cap makes a picture cheaper.
  return {
    mostNanoUsd: nanoUsd,
    leastNanoUsd: nanoUsd,
    inputNanoUsd: nanoUsd,
    inputTokens: 0,
    outputCap: 0,
    isCapNamed: false,
    capFor: () => 0,
  };
}
