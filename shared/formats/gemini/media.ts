/** Media as the format has them, by their MIME type, and as chat has them. */
export type MediaKind = "image" | "audio" | "file";

export function kindOf(mime: string): MediaKind {
  if (/^image\//i.test(mime)) return "image";
  return /^audio\//i.test(mime) ? "audio" : "file";
}

const dataAddress = /^data:([^;,]*)(?:;[^;,]*)*;base64,/i;

/** `data:<mime>;base64,<data>`, taken apart. */
export function inlineOf(address: string): { mimeType: string; data: string } | undefined {
  const [head, mime] = dataAddress.exec(address) ?? [];
  return head === undefined
    ? undefined
    : { mimeType: mime || "application/octet-stream", data: address.slice(head.length) };
}

const wavNames = new Set(["wav", "x-wav", "wave", "vnd.wave", "x-pn-wav"]);

/** As OpenAI names audio formats: `wav`, `mp3`. */
export function audioFormat(mime: string): string {
  const name = mime
    .replace(/^audio\//i, "")
    .replace(/;.*$/, "")
    .toLowerCase();
  if (wavNames.has(name)) return "wav";
  return name === "mpeg" || name === "mpga" ? "mp3" : name.replace(/^x-/, "");
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
