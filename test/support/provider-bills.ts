import { countTokens } from "gpt-tokenizer/encoding/o200k_base";

/**
 * Providers' bills for media, in tokens, by their published rules: OpenAI "Images and vision" and "PDF files",
 * Anthropic "Vision" and "PDF support", Google "Media resolution" and "Understand and count tokens". Independent of the
 * code under test.
 */
export type Media =
  | {
      readonly kind: "image";
      readonly width: number;
      readonly height: number;
      readonly detail?: "low" | "high" | "original";
    }
  | { readonly kind: "pdf"; readonly texts: readonly string[] }
  | { readonly kind: "audio"; readonly seconds: number }
  | { readonly kind: "film"; readonly seconds: number }
  | { readonly kind: "text"; readonly text: string };

type ImageBill = (width: number, height: number, detail: string) => number;

const shrink = (width: number, height: number, edge: number): [number, number] => {
  const by = Math.max(1, width / edge, height / edge);
  return [width / by, height / by];
};

const tiled =
  (base: number, tile: number): ImageBill =>
  (width, height, detail) => {
    if (detail === "low") return base;
    let [w, h] = shrink(width, height, 2048);
    const by = Math.max(1, Math.min(w, h) / 768);
    [w, h] = [w / by, h / by];
    return base + tile * Math.ceil(w / 512) * Math.ceil(h / 512);
  };

const patched =
  (factor: number, high: number, original: number): ImageBill =>
  (width, height, detail) => {
    const [w, h] = detail === "low" ? shrink(width, height, 512) : [width, height];
    const most = detail === "original" ? original : high;
    return Math.ceil(Math.min(most, Math.ceil(w / 32) * Math.ceil(h / 32)) * factor);
  };

const measured =
  (edge: number, most: number): ImageBill =>
  (width, height) => {
    const [w, h] = shrink(width, height, edge);
    return Math.min(most, Math.ceil((w * h) / 750));
  };

const cropped: ImageBill = (width, height) => {
  if (width <= 384 && height <= 384) return 258;
  const unit = Math.max(256, Math.min(768, Math.floor(Math.min(width, height) / 1.5)));
  return 258 * Math.min(16, Math.ceil(width / unit) * Math.ceil(height / unit));
};

interface Rules {
  readonly image: ImageBill;
  readonly page: number;
  readonly pageText: boolean;
  readonly second: number;
  readonly frame: number;
}

/** A page in letter format, drawn with 1,568 pixels on its longer side. */
const [pageWidth, pageHeight] = [1_212, 1_568];

function rulesFor(id: string): Rules {
  const ofOpenai = (image: ImageBill) => ({
    image,
    page: image(pageWidth, pageHeight, ""),
    pageText: true,
    second: 10,
    frame: 0,
  });
  const name = id.replace(/^.*\//, "");
  if (name.startsWith("gpt-4o-mini")) return ofOpenai(tiled(2_833, 5_667));
  if (name === "gpt-4.1-mini") return ofOpenai(patched(1.62, 1_536, 1_536));
  if (/^gpt-4|^gpt-audio/.test(name)) return ofOpenai(tiled(85, 170));
  if (name === "gpt-5.1") return ofOpenai(tiled(70, 140));
  if (name.endsWith("-mini")) return ofOpenai(patched(1.62, 1_536, 1_536));
  if (name.endsWith("-nano")) return ofOpenai(patched(2.46, 1_536, 1_536));
  if (/^gpt-5\.[23]/.test(name)) return ofOpenai(patched(1.2, 1_536, 1_536));
  if (name.startsWith("gpt-5")) return ofOpenai(patched(1.2, 2_500, 10_000));
  if (name.startsWith("gpt-6")) return ofOpenai(patched(1.2, 2_500, 62_500));
  const ofAnthropic = (image: ImageBill) => ({ image, page: 1_568, pageText: true, second: 0, frame: 0 });
  if (/^claude-(haiku-4-5|sonnet-4-6)/.test(name)) return ofAnthropic(measured(1_568, 1_568));
  if (name.startsWith("claude")) return ofAnthropic(measured(2_576, 4_784));
  if (name.startsWith("gemini-2")) return { image: cropped, page: 258, pageText: false, second: 32, frame: 258 };
  return { image: () => 1_120, page: 560, pageText: false, second: 32, frame: 70 };
}

const counted = new Map<string, number>();
function textTokens(text: string): number {
  const known = counted.get(text) ?? countTokens(text);
  counted.set(text, known);
  return known;
}

export function billOf(id: string, media: Media): number {
  const rules = rulesFor(id);
  switch (media.kind) {
    case "image":
      return rules.image(media.width, media.height, media.detail ?? "high");
    case "pdf":
      return media.texts.reduce((sum, text) => sum + rules.page + (rules.pageText ? textTokens(text) : 0), 0);
    case "audio":
      return Math.ceil(media.seconds * rules.second);
    case "film":
      return Math.ceil(media.seconds * (rules.second + rules.frame));
    case "text":
      return textTokens(media.text);
  }
}
