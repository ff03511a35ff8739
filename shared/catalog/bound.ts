import type { CallSize, MediaPart } from "#formats";
import type { Model } from "./model.ts";
import { bandAt, maxAmountFor, toNanoUsd } from "./prices.ts";
import type { Band, Bound, Tier } from "./types.ts";

/** The smallest image patch that a provider counts: 28 by 28 pixels (others use 32). */
const patchPixels = 28;
/**
 * The densest plausible document: a page of a few lines takes a kilobyte, and a byte of compressed text is a token
 * (three to four letters). Denser documents can be constructed; they are detected when a document is counted before it
 * is sent.
 */
const pageBytes = 1_024;
/** Equals 4 kbit/s, below any compression of speech. */
const recordingBytesPerSecond = 500;

function imageTokens({ mediaTokens: { imagePatch } }: Model, { dimensions }: MediaPart): number {
  if (imagePatch === undefined || dimensions === undefined) return Number.POSITIVE_INFINITY;
  const patches = Math.ceil(dimensions.width / patchPixels) * Math.ceil(dimensions.height / patchPixels);
  return Math.ceil(patches * imagePatch);
}

function audioTokens({ mediaTokens: { audioSecond } }: Model, { seconds, bytes }: MediaPart): number {
  if (audioSecond === undefined || bytes === undefined) return Number.POSITIVE_INFINITY;
  return Math.ceil(Math.ceil(seconds ?? bytes / recordingBytesPerSecond) * audioSecond);
}

function pdfTokens({ mediaTokens: { page } }: Model, { bytes }: MediaPart): number {
  if (page === undefined || bytes === undefined) return Number.POSITIVE_INFINITY;
  return Math.max(1, Math.ceil(bytes / pageBytes)) * page + bytes;
}

/** Other content has no rule, because its bytes do not bound its length: a short video file may last hours. */
const partRules: Partial<Record<NonNullable<MediaPart["content"]>, (model: Model, part: MediaPart) => number>> = {
  image: imageTokens,
  audio: audioTokens,
  pdf: pdfTokens,
  // No tokenizer makes more tokens than there are bytes.
  text: (_, { bytes }) => bytes ?? Number.POSITIVE_INFINITY,
};

/** Returns the most tokens that a part can count as: the limit of its content, capped at the catalog's maximum. */
function maxTokensOfPart(model: Model, part: MediaPart): number {
  const { kind, content } = part;
  const rule = content && partRules[content];
  const { maxPartTokens, contextLength } = model;
  // An image sent as a file counts as an image, if the model accepts images.
  const own = content === "image" || content === "audio" ? maxPartTokens[content] : undefined;
  const maximum = own ?? maxPartTokens[kind] ?? contextLength;
  return rule ? Math.min(rule(model, part), maximum) : maximum;
}

/** A video may be billed as audio because of its audio track, and a link because its content is unknown. */
const mayHaveAudio = ({ kind, content }: MediaPart): boolean =>
  content === undefined ? kind !== "image" : content === "audio" || content === "video" || content === "other";

/** Tokens that a chat template adds to a call (the preamble of tools) and to each message. */
const baseTokens = 512;
const messageTokens = 16;

/** Bounds text by its bytes: no tokenizer makes more tokens than there are bytes. */
function maxInputTokens(model: Model, size: CallSize): number {
  let tokens = size.inputBytes + baseTokens + messageTokens * size.messages;
  for (const part of size.parts) tokens += maxTokensOfPart(model, part);
  // Documents that are too long for the model are split, and the query is read again with each part.
  if (model.task === "rerank") return tokens;
  // Every input of an embeddings call has its own context.
  const contexts = model.type === "embeddings" ? Math.max(1, size.messages) : 1;
  return Math.min(tokens, model.contextLength * contexts);
}

/** Returns the highest price of an input token. Cache writes count only where they are requested or automatic. */
function highestInputPrice({ automaticCacheWrites }: Model, size: CallSize, { dearest }: Band): bigint {
  const prices = [dearest.input];
  if (size.cacheWrites || automaticCacheWrites) prices.push(dearest.cacheWrite);
  if (size.cacheWrites === "long") prices.push(dearest.cacheWriteLong);
  if (size.parts.some(mayHaveAudio)) prices.push(dearest.audioInput);
  return prices.reduce((max, price) => (price > max ? price : max));
}

export function boundOfTokens(model: Model, size: CallSize, tier: Tier): Bound {
  if (model.media) throw new TypeError(`${model.id} is not billed by tokens: its cost has no bound in tokens`);
  const inputTokens = maxInputTokens(model, size);
  const band = bandAt(model.prices[tier], inputTokens);
  const { dearest } = band;
  const fixed =
    BigInt(inputTokens) * highestInputPrice(model, size, band) +
    dearest.request +
    BigInt(size.searches ?? 0) * dearest.search;
  /** The cost of one more output token for every choice. */
  const step = BigInt(size.choices) * dearest.output;
  const outputCap = Math.min(size.outputCap ?? model.maxOutputTokens, model.maxOutputTokens, model.contextLength);
  const maxNanoUsd = toNanoUsd(fixed + BigInt(outputCap) * step);
  const least = size.outputCap === undefined && outputCap > 1 ? 1 : outputCap;
  return {
    maxNanoUsd,
    minNanoUsd: least === outputCap ? maxNanoUsd : toNanoUsd(fixed + BigInt(least) * step),
    inputNanoUsd: toNanoUsd(fixed),
    inputTokens,
    outputCap,
    isCapNamed: size.outputCap !== undefined,
    capFor: (grantedNanoUsd) => {
      if (grantedNanoUsd >= maxNanoUsd) return outputCap;
      const remaining = maxAmountFor(grantedNanoUsd) - fixed;
      // `step` is not 0 here. If it were, `maxNanoUsd` would equal the fixed part, and a smaller grant would leave a
      // negative remainder.
      return remaining < step ? 0 : Number(remaining / step);
    },
  };
}
