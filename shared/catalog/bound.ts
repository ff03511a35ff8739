import type { CallSize } from "#formats";
import { mayHaveSound, mostPartTokens } from "./parts.ts";
import { bandAt, mostWithin, toNanoUsd } from "./prices.ts";
import type { Band, Bound, Model, Tier } from "./types.ts";

/** What a chat template adds: once for the call (the preamble that providers put before tools), and for each message. */
const baseTokens = 512;
const messageTokens = 16;

/** No tokenizer makes more tokens than there are bytes, so bytes bound them without being tokenized. */
function mostInputTokens(model: Model, size: CallSize): number {
  let tokens = size.inputBytes + baseTokens + messageTokens * size.messages;
  for (const part of size.parts) tokens += mostPartTokens(model, part);
  // Every input of an embeddings call has a context of its own.
  const contexts = model.type === "embeddings" ? Math.max(1, size.messages) : 1;
  return Math.min(tokens, model.contextLength * contexts);
}

/** Of an input token, whichever of its prices it comes under: cache writes are billed where they are asked for. */
function dearestInput({ automaticCacheWrites }: Model, size: CallSize, { dearest }: Band): bigint {
  const prices = [dearest.input];
  if (size.cacheWrites || automaticCacheWrites) prices.push(dearest.cacheWrite);
  if (size.cacheWrites === "long") prices.push(dearest.cacheWriteLong);
  if (size.parts.some(mayHaveSound)) prices.push(dearest.audioInput);
  return prices.reduce((most, price) => (price > most ? price : most));
}

export function boundOf(model: Model, size: CallSize, tier: Tier): Bound {
  if (model.type !== "text" && model.type !== "embeddings")
    throw new TypeError(`${model.id} is not billed by tokens: its cost has no bound in tokens`);
  const inputTokens = mostInputTokens(model, size);
  const band = bandAt(model.prices[tier], inputTokens);
  const { dearest } = band;
  const fixed = BigInt(inputTokens) * dearestInput(model, size, band) + dearest.request;
  /** One more output token for every choice. */
  const step = BigInt(size.choices) * dearest.output;
  const outputCap = Math.min(size.outputCap ?? model.maxOutputTokens, model.maxOutputTokens, model.contextLength);
  const mostNanoUsd = toNanoUsd(fixed + BigInt(outputCap) * step);
  const least = size.outputCap === undefined && outputCap > 1 ? 1 : outputCap;
  return {
    mostNanoUsd,
    leastNanoUsd: least === outputCap ? mostNanoUsd : toNanoUsd(fixed + BigInt(least) * step),
    inputNanoUsd: toNanoUsd(fixed),
    inputTokens,
    outputCap,
    isCapNamed: size.outputCap !== undefined,
    capFor: (grantedNanoUsd) => {
      if (grantedNanoUsd >= mostNanoUsd) return outputCap;
      const left = mostWithin(grantedNanoUsd) - fixed;
      // A step of 0 is never divided by: then `most` is the fixed part alone, and less than that leaves nothing.
      return left < step ? 0 : Number(left / step);
    },
  };
}
