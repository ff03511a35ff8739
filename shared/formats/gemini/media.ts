import type { PartKind } from "../types.ts";

/** Media as the format has them, by their MIME type, and as chat has them. */
export function kindOf(mime: string): PartKind {
  if (/^image\//i.test(mime)) return "image";
  return /^audio\//i.test(mime) ? "audio" : "file";
}
