import { type Dimensions, dimensionsOf } from "#formats";
import { type JsonObject, object, text } from "#json";
import type { AudioRate } from "./audio.ts";
import type { PdfSize } from "./pdf.ts";

/** A file that is measured in the thread: the pages of a PDF, the bit rate of a recording by its header. */
export interface Readable {
  readonly type: "application/pdf" | "audio/mpeg" | "audio/wav";
  readonly base64: string;
}

export type Measured = PdfSize | AudioRate | undefined;

export interface Document extends Readable {
  /** Turns the measurement into tokens; `measured` is undefined if the file could not be read. */
  readonly tokens: (measured: Measured) => number;
}

/** A provider's rules for counting media, in tokens. */
export interface Rules {
  readonly image: (size: Dimensions, detail: string) => number;
  /** An image that cannot be measured. */
  readonly unknownImage: number;
  readonly audioSecond: number;
  /** A page of a document as an image. */
  readonly page: number;
  /** Set if the text of a page is billed as well. */
  readonly hasPageText: boolean;
}

const megapixel: Dimensions = { width: 1_024, height: 1_024 };
const { ceil, floor, max, min } = Math;

/** Scales down to fit a square with this edge, in pixels. */
function within({ width, height }: Dimensions, edge: number): Dimensions {
  const scale = min(1, edge / max(width, height, 1));
  return { width: width * scale, height: height * scale };
}

/** OpenAI's older models count tiles of 512 by 512 pixels, after scaling the shorter side to at most 768. */
const tiles =
  (base: number, each: number) =>
  (size: Dimensions, detail: string): number => {
    if (detail === "low") return base;
    const fit = within(size, 2_048);
    const scale = min(1, 768 / max(1, min(fit.width, fit.height)));
    return base + each * ceil((fit.width * scale) / 512) * ceil((fit.height * scale) / 512);
  };

/** OpenAI's newer models count patches of 32 by 32 pixels, up to a limit, times a factor that depends on the model. */
const patches =
  (factor: number, most: number, maxOriginal: number) =>
  (size: Dimensions, detail: string): number => {
    const fit = detail === "low" ? within(size, 512) : size;
    const count = ceil(fit.width / 32) * ceil(fit.height / 32);
    return ceil(min(count, detail === "original" ? maxOriginal : most) * factor);
  };

/** Anthropic counts one token for 750 pixels, after scaling to a maximum edge, up to a maximum number of tokens. */
const pixels = (edge: number, most: number) => (size: Dimensions) => {
  const { width, height } = within(size, edge);
  return min(most, ceil((width * height) / 750));
};

/** Gemini before 3 counts one tile for a small image, else tiles of two thirds of the shorter side. */
function geminiTiles({ width, height }: Dimensions): number {
  if (width <= 384 && height <= 384) return 258;
  const unit = min(768, max(256, floor(min(width, height) / 1.5)));
  return 258 * min(16, ceil(width / unit) * ceil(height / unit));
}

/** A letter page as it is rendered, in pixels. */
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

/** The local model's own rules. */
const local = (): Rules => ({
  image: () => 256,
  unknownImage: 256,
  audioSecond: 10,
  page: 256,
  hasPageText: false,
});

/** The average of the others, for unknown owners. An image counts one token for 750 pixels, between 85 and 1,600. */
const anyone: Rules = {
  image: ({ width, height }, detail) => (detail === "low" ? 85 : min(1_600, max(85, ceil((width * height) / 750)))),
  unknownImage: 1_400,
  audioSecond: 10,
  page: 1_500,
  hasPageText: false,
};

/** The rules that each owner publishes, as of November 2026. */
const rulesByOwner = new Map(Object.entries({ openai, anthropic, google, local }));

export const rulesOf = (owner: string | undefined, model: string): Rules =>
  rulesByOwner.get(owner ?? "")?.(model) ?? anyone;

const dataOf = (address: string): string => {
  const comma = address.slice(0, 256).indexOf(",");
  return comma < 0 ? address : address.slice(comma + 1);
};
const isAddress = (value: string): boolean => /^https?:/i.test(value);

/** `image` is `{url, detail?}`, or the bare URL. */
export function imageTokens(image: unknown, rules: Rules): number {
  const address = text(image) || text(object(image)["url"]);
  const detail = text(object(image)["detail"]);
  const size = isAddress(address) ? undefined : dimensionsOf(dataOf(address));
  if (size) return rules.image(size, detail);
  return detail === "low" ? rules.image(megapixel, detail) : rules.unknownImage;
}

/** Assumes WAV at 24 kHz, 16 bits and one channel, and compressed formats at 128 kbit/s. */
const usualBytesPerSecond = { wav: 48_000, compressed: 16_000 };
const audioHeaderBytes = 64 * 1024;

/**
 * The duration comes from the frame count in a variable-bitrate header, else from the bitrate, else from the usual bitrate.
 */
export function audioTokens({ data, format }: JsonObject, { audioSecond }: Rules): number | Document {
  const base64 = dataOf(text(data));
  const bytes = floor((base64.length * 3) / 4);
  const bytesPerSecond = usualBytesPerSecond[format === "wav" ? "wav" : "compressed"];
  const usual = ceil((bytes / bytesPerSecond) * audioSecond);
  const type = { wav: "audio/wav" as const, mp3: "audio/mpeg" as const }[text(format)];
  if (!type) return usual;
  return {
    type,
    base64: base64.slice(0, (audioHeaderBytes / 3) * 4),
    tokens(measured) {
      if (!measured || !("bitsPerSecond" in measured)) return usual;
      const { bitsPerSecond, seconds } = measured;
      return ceil((seconds ?? bytes / (bitsPerSecond / 8 || bytesPerSecond)) * audioSecond);
    },
  };
}

const charactersPerToken = 4;
/** Assumed size of a page, for documents that could not be read. */
const usualPageBytes = 64 * 1024;

/** Returns the tokens, or a document to read in the thread. */
export function fileTokens({ file_data }: JsonObject, rules: Rules): number | Document {
  const address = text(file_data);
  if (isAddress(address)) return rules.page;
  const base64 = dataOf(address);
  const bytes = ceil((base64.length * 3) / 4);
  if (/^data:image\//i.test(address)) return imageTokens(address, rules);
  if (/^data:audio\//i.test(address)) {
    const [, format = ""] = /^data:audio\/(?:x-)?(\w+)/i.exec(address) ?? [];
    return audioTokens({ data: base64, format: format === "mpeg" ? "mp3" : format }, rules);
  }
  if (/^data:(text\/|application\/json)/i.test(address)) return ceil(bytes / charactersPerToken);
  const tokens: Document["tokens"] = (measured) => {
    const size = measured && "pages" in measured ? measured : undefined;
    const pages = size?.pages || max(1, ceil(bytes / usualPageBytes));
    const said = size && rules.hasPageText ? ceil(size.characters / charactersPerToken) : 0;
    return pages * rules.page + said;
  };
  return { type: "application/pdf", base64, tokens };
}
