/** Media as the format has them, by their MIME type, and as chat has them. */
export type MediaKind = "image" | "audio" | "file";

export function kindOf(mime: string): MediaKind {
  if (/^image\//i.test(mime)) return "image";
  return /^audio\//i.test(mime) ? "audio" : "file";
}

export const audioMime = (format: string): string => (format.includes("/") ? format : `audio/${format || "wav"}`);

const byEnding = new Map([
  ["png", "image/png"],
  ["jpg", "image/jpeg"],
  ["jpeg", "image/jpeg"],
  ["webp", "image/webp"],
  ["gif", "image/gif"],
  ["heic", "image/heic"],
  ["heif", "image/heif"],
  ["bmp", "image/bmp"],
  ["pdf", "application/pdf"],
  ["txt", "text/plain"],
  ["html", "text/html"],
  ["csv", "text/csv"],
]);

/** Chat's links do not say what they lead to, and the maker asks for it. */
export function mimeOfLink(link: string, otherwise: string): string {
  const [, ending = ""] = /\.(\w{1,5})(?:[?#]|$)/.exec(link) ?? [];
  return byEnding.get(ending.toLowerCase()) ?? otherwise;
}
