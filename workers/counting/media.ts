import { type Dimensions, dimensionsOf, type JsonObject, object, text } from "#formats";
import { secondsOf } from "./duration.ts";
import type { PdfSize } from "./pdf.ts";

/** A document that the thread measures; `tokens` turns its size into a count. */
export interface Document {
  readonly base64: string;
  readonly tokens: (size: PdfSize | undefined) => number;
}

/** How a provider counts media. */
interface Rules {
  readonly image: (size: Dimensions, detail: string) => number;
  /** For one that cannot be measured. */
  readonly unknownImage: number;
  readonly audioSecond: number;
  /** A page of a document, as an image. */
  readonly page: number;
  /** Whether the text of a page is billed as well. */
  readonly hasPageText: boolean;
}

const megapixel: Dimensions = { width: 1_024, height: 1_024 };
const { ceil, floor, max, min } = Math;

/** Scaled down to fit a square of `edge` pixels. */
function fitWithin({ width, height }: Dimensions, edge: number): Dimensions {
  const scale = min(1, edge / max(width, height, 1));
  return { width: width * scale, height: height * scale };
}

/** OpenAI's older models: tiles of 512 by 512 pixels, of an image scaled to a shorter side of 768. */
const tiles =
  (base: number, each: number) =>
  (size: Dimensions, detail: string): number => {
    if (detail === "low") return base;
    const fit = fitWithin(size, 2_048);
    const scale = min(1, 768 / max(1, min(fit.width, fit.height)));
    return base + each * ceil((fit.width * scale) / 512) * ceil((fit.height * scale) / 512);
  };

/** OpenAI's newer models: patches of 32 by 32 pixels up to a maximum, times a factor of the model. */
const patches =
  (factor: number, maxPatches: number, maxOriginal: number) =>
  (size: Dimensions, detail: string): number => {
    const fit = detail === "low" ? fitWithin(size, 512) : size;
    const count = ceil(fit.width / 32) * ceil(fit.height / 32);
    return ceil(min(count, detail === "original" ? maxOriginal : maxPatches) * factor);
  };

/** Anthropic: a token per 750 pixels, of an image scaled to a maximum edge. */
const pixels = (edge: number, maxTokens: number) => (size: Dimensions) => {
  const { width, height } = fitWithin(size, edge);
  return min(maxTokens, ceil((width * height) / 750));
};

/** Gemini before 3: one tile for a small image, else tiles of two thirds of the shorter side. */
function geminiTiles({ width, height }: Dimensions): number {
  if (width <= 384 && height <= 384) return 258;
  const unit = min(768, max(256, floor(min(width, height) / 1.5)));
  return 258 * min(16, ceil(width / unit) * ceil(height / unit));
}

/** A page as providers render it. */
const letter: Dimensions = { width: 1_212, height: 1_568 };

function openai(model: string): Rules {
  const isTiled = /gpt-4o|gpt-4\.1$|gpt-4\.1-20|gpt-5$|gpt-5\.1|gpt-5-20|gpt-audio/.test(model);
  const ofTiles = /gpt-4o-mini/.test(model)
    ? tiles(2_833, 5_667)
    : /gpt-5/.test(model)
      ? tiles(70, 140)
      : tiles(85, 170);
  const isLarge = /gpt-(5\.[4-9]|6)/.test(model);
  const factor = /nano/.test(model) ? 2.46 : /mini/.test(model) ? 1.62 : 1.2;
  const original = /gpt-6/.test(model) ? 62_500 : 10_000;
  const ofPatches = isLarge && factor === 1.2 ? patches(factor, 2_500, original) : patches(factor, 1_536, 1_536);
  const image = isTiled ? ofTiles : ofPatches;
  return { image, unknownImage: image(megapixel, ""), audioSecond: 10, page: image(letter, ""), hasPageText: true };
}

function anthropic(model: string): Rules {
  const isOlder = /claude-(3|(opus|sonnet|haiku)-4(-[0-6])?(?!\d|-[7-9]))/.test(model);
  const image = isOlder ? pixels(1_568, 1_568) : pixels(2_576, 4_784);
  return { image, unknownImage: image(megapixel), audioSecond: 10, page: 1_568, hasPageText: true };
}

function google(model: string): Rules {
  const isOlder = /gemini-[12]/.test(model);
  const image = isOlder ? geminiTiles : () => 1_120;
  return { image, unknownImage: image(megapixel), audioSecond: 32, page: isOlder ? 258 : 560, hasPageText: false };
}

/** For an unknown owner: an average. */
const average: Rules = {
  image: ({ width, height }, detail) => (detail === "low" ? 85 : min(1_600, max(85, ceil((width * height) / 750)))),
  unknownImage: 1_400,
  audioSecond: 10,
  page: 1_500,
  hasPageText: false,
};

/** The rules that OpenAI, Anthropic and Google published for their models, as of November 2026. */
export function rulesOf(owner: string | undefined, model: string): Rules {
  switch (owner ?? "") {
    case "openai":
      return openai(model);
    case "anthropic":
      return anthropic(model);
    case "google":
      return google(model);
    default:
      return average;
  }
}

const dataOf = (address: string): string => {
  const comma = address.slice(0, 256).indexOf(",");
  return comma < 0 ? address : address.slice(comma + 1);
};
const isAddress = (value: string): boolean => /^https?:/i.test(value);
const decodedBytes = (data: string): number => ceil((data.length * 3) / 4);

/** `image`: `{url, detail?}`, or the address alone. */
export function imageTokens(image: unknown, rules: Rules): number {
  const address = text(image) || text(object(image)["url"]);
  const detail = text(object(image)["detail"]);
  const size = isAddress(address) ? undefined : dimensionsOf(dataOf(address));
  if (size) return rules.image(size, detail);
  return detail === "low" ? rules.image(megapixel, detail) : rules.unknownImage;
}

export const audioTokens = ({ data, format }: JsonObject, { audioSecond }: Rules): number =>
  ceil(secondsOf(dataOf(text(data)), text(format)) * audioSecond);

const charactersPerToken = 4;
/** For a document that could not be read. */
const usualPageBytes = 64 * 1024;

/** Tokens, or a document that the thread has to measure. */
export function fileTokens({ file_data }: JsonObject, rules: Rules): number | Document {
  const address = text(file_data);
  if (isAddress(address)) return rules.page;
  const base64 = dataOf(address);
  const bytes = decodedBytes(base64);
  if (/^data:image\//i.test(address)) return imageTokens(address, rules);
  if (/^data:audio\//i.test(address)) {
    const [, format = ""] = /^data:audio\/(?:x-)?(\w+)/i.exec(address) ?? [];
    return audioTokens({ data: base64, format: format === "mpeg" ? "mp3" : format }, rules);
  }
  if (/^data:(text\/|application\/json)/i.test(address)) return ceil(bytes / charactersPerToken);
  const tokens: Document["tokens"] = (size) => {
    const pages = size?.pages || max(1, ceil(bytes / usualPageBytes));
    const textTokens = size && rules.hasPageText ? ceil(size.characters / charactersPerToken) : 0;
    return pages * rules.page + textTokens;
  };
  return { base64, tokens };
}
