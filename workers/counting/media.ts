import { dimensionsOf, type Loose, object, text } from "#formats";

/**
 * Tokens of the media of a prompt. Makers differ by up to five times; these rules are in their middle. An image has a token
 * for 750 pixels (Anthropic's rule; OpenAI's tiles give half of it, Gemini's about as much), at least 85 (OpenAI's `detail:
 * low`) and at most 1,600 (Anthropic's older models); one that cannot be measured counts as a megapixel.
 */
const least = 85;
const most = 1_600;
const unknownImage = 1_400;
const pixelsPerToken = 750;

/** OpenAI hears ten tokens a second. WAV of 24 kHz, 16 bits, one channel; what is compressed has 128 kbit/s. */
const audioTokensPerSecond = 10;
const wavBytesPerSecond = 48_000;
const compressedBytesPerSecond = 16_000;

/** A page of a PDF: its picture and its text (Anthropic 1,500 to 3,000, Gemini 560). */
const pageTokens = 1_500;
const pageBytes = 64 * 1024;

const dataOf = (address: string): string => {
  const comma = address.slice(0, 256).indexOf(",");
  return comma < 0 ? address : address.slice(comma + 1);
};
const isAddress = (value: string): boolean => /^https?:/i.test(value);
/** Of base64. */
const bytesOf = (data: string): number => Math.ceil((data.length * 3) / 4);

/** `{url, detail?}`, or the bare address. */
export function imageTokens(image: unknown): number {
  const address = text(image) || text(object(image)["url"]);
  if (object(image)["detail"] === "low") return least;
  const size = isAddress(address) ? undefined : dimensionsOf(dataOf(address));
  if (!size) return unknownImage;
  return Math.min(most, Math.max(least, Math.ceil((size.width * size.height) / pixelsPerToken)));
}

export function audioTokens({ data, format }: Loose): number {
  const perSecond = format === "wav" ? wavBytesPerSecond : compressedBytesPerSecond;
  return Math.ceil((bytesOf(dataOf(text(data))) / perSecond) * audioTokensPerSecond);
}

export function fileTokens({ file_data }: Loose): number {
  const address = text(file_data);
  if (isAddress(address)) return pageTokens;
  const bytes = bytesOf(dataOf(address));
  if (/^data:text\//i.test(address)) return Math.ceil(bytes / 4);
  return Math.max(1, Math.ceil(bytes / pageBytes)) * pageTokens;
}
