import { dimensionsOf } from "#formats";
import { UpstreamFailure } from "../provider.ts";

/** What the local model says of an image: of a data URL its kind, size and bytes; of any other the address. */
export function describeImage(url: string, param: string): string {
  if (!/^data:/i.test(url)) return `an image at ${url.slice(0, 200)} (not fetched: this model has no network)`;
  const [head] = /^[^,]*;\s*base64,/i.exec(url) ?? [];
  return describeImageFile(Buffer.from(head ? url.slice(head.length) : "", "base64"), param);
}

const signatures = [
  ["PNG", /^\x89PNG/],
  ["GIF", /^GIF8[79]a/],
  ["WebP", /^RIFF.{4}WEBP/s],
  ["JPEG", /^\xff\xd8/],
] as const;

export function describeImageFile(bytes: Buffer, param: string): string {
  const head = bytes.toString("latin1", 0, 12);
  const [kind] = signatures.find(([, signature]) => signature.test(head)) ?? [];
  if (!kind) throw new UpstreamFailure("refused", "The image is not a PNG, JPEG, GIF or WebP file.", { param });
  const size = dimensionsOf(bytes.toString("base64", 0, dimensionBytes));
  return `a ${kind} image${size ? ` of ${size.width} x ${size.height} pixels` : ""}, ${bytes.length} bytes`;
}

/** As many bytes as `dimensionsOf` reads. */
const dimensionBytes = 96 * 1024;
