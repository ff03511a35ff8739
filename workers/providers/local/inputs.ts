import { createHash } from "node:crypto";
import { dimensionsOf } from "#formats";
import { type GenerationCall, type InputFile, refusal } from "../provider.ts";

export function uploadOf({ uploads }: GenerationCall, id: string, field: string, kinds: readonly InputFile["kind"][]) {
  const file = uploads.get(id);
  if (!file) throw refusal(`${field}: '${id.slice(0, 100)}' is not an upload.`, field);
  if (kinds.includes(file.kind)) return file;
  throw refusal(`${field}: the upload is of kind ${file.kind}, not ${kinds.join(" or ")}.`, file.param);
}

/** The limit that providers of image models have. */
const imageLimitBytes = 50 * 1024 * 1024;

/** Hashing more of an image would block the event loop. */
const hashedBytes = 1024 * 1024;

export async function readImage(call: GenerationCall, id: string, field: string) {
  const file = uploadOf(call, id, field, ["image"]);
  const bytes = await file.read(imageLimitBytes);
  call.signal.throwIfAborted();
  const description = describeImageFile(bytes, file.param);
  return { bytes, param: file.param, description, hash: hashOf(description, bytes.subarray(0, hashedBytes)) };
}

/** SHA-256 of the parts with their lengths. Generated files depend only on such hashes, so equal inputs make equal files. */
export function hashOf(...parts: readonly (string | Buffer)[]): Buffer {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(`${part.length} `).update(part);
  return hash.digest();
}

/** Describes an image: a data URL by its kind, size and bytes, any other URL by its address. */
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

/** `dimensionsOf` reads no more bytes. */
const dimensionBytes = 96 * 1024;

export const dimensionsIn = (bytes: Buffer) => dimensionsOf(bytes.toString("base64", 0, dimensionBytes));

function describeImageFile(bytes: Buffer, param: string): string {
  const head = bytes.toString("latin1", 0, 12);
  const [kind] = signatures.find(([, signature]) => signature.test(head)) ?? [];
  if (!kind) throw refusal("The image is not a PNG, JPEG, GIF or WebP file.", param);
  const size = dimensionsIn(bytes);
  return `a ${kind} image${size ? ` of ${size.width} x ${size.height} pixels` : ""}, ${bytes.length} bytes`;
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
