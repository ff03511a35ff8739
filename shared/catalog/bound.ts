import type { CallSize } from "#formats";
import { bandAt, mostWithin, toNanoUsd } from "./prices.ts";
import type { Bound, Model, Tier } from "./types.ts";

/** What a chat template adds: once for the call (the preamble that makers put before tools), and for each message. */
const baseTokens = 512;
const messageTokens = 16;
const partKinds = ["image", "audio", "file"] as const;

/** No tokenizer makes more tokens than there are bytes, so bytes bound them without being tokenized. */
function mostInputTokens(model: Model, size: CallSize): number {
  let tokens = size.inputBytes + baseTokens + messageTokens * size.messages;
  for (const kind of partKinds) tokens += size.parts[kind] * (model.maxPartTokens[kind] ?? model.contextLength);
  // Every input of an embeddings call has a context of its own.
  const contexts = model.type === "embeddings" ? Math.max(1, size.messages) : 1;
  return Math.min(tokens, model.contextLength * contexts);
}

export function boundOf(model: Model, size: CallSize, tier: Tier): Bound {
  if (model.type !== "text" && model.type !== "embeddings")
    throw new TypeError(`${model.id} is not billed by tokens: its cost has no bound in tokens`);
  const inputTokens = mostInputTokens(model, size);
  const { dearest } = bandAt(model.prices[tier], inputTokens);
  const inputPrice = size.parts.audio + size.parts.file > 0 ? dearest.inputWithAudio : dearest.input;
  const fixed = BigInt(inputTokens) * inputPrice + dearest.request;
  /** One more output token for every choice. */
  const step = BigInt(size.choices) * dearest.output;
  const outputCap = Math.min(size.outputCap ?? model.maxOutputTokens, model.maxOutputTokens, model.contextLength);
  const mostNanoUsd = toNanoUsd(fixed + BigInt(outputCap) * step);
  const least = size.outputCap === undefined && outputCap > 1 ? 1 : outputCap;
  return {
    mostNanoUsd,
    leastNanoUsd: least === outputCap ? mostNanoUsd : toNanoUsd(fixed + BigInt(least) * step),
    inputTokens,
    outputCap,
    capFor: (grantedNanoUsd) => {
      if (grantedNanoUsd >= mostNanoUsd) return outputCap;
      const left = mostWithin(grantedNanoUsd) - fixed;
      // A step of 0 is never divided by: then `most` is the fixed part alone, and less than that leaves nothing.
      return left < step ? 0 : Number(left / step);
    },
  };
}
