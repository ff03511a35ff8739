import { refuse } from "./errors.ts";

/** RFC 6838 allows 127 characters on each side of the slash. */
export const maxMediaTypeLength = 255;

export function checkMediaType(type: unknown, param: string): void {
  if (typeof type === "string" && type.length > maxMediaTypeLength)
    refuse(param, `must have at most ${maxMediaTypeLength} characters`);
}

const dataAddress = /^data:([^;,]*)(?:;[^;,]*)*;base64,/i;
/** The longest prefix that may precede the data. */
const maxPrefix = 256;

/** Splits `data:<mime>;base64,<data>` into its parts. */
export function inlineOf(address: string): { mimeType: string; data: string } | undefined {
  const [head, mime = ""] = dataAddress.exec(address.slice(0, maxPrefix)) ?? [];
  return head === undefined ? undefined : { mimeType: mime, data: address.slice(head.length) };
}

const extensions = new Map([
  ["png", "image/png"],
  ["jpg", "image/jpeg"],
  ["jpeg", "image/jpeg"],
  ["webp", "image/webp"],
  ["gif", "image/gif"],
  ["heic", "image/heic"],
  ["heif", "image/heif"],
  ["avif", "image/avif"],
  ["bmp", "image/bmp"],
  ["pdf", "application/pdf"],
  ["txt", "text/plain"],
  ["md", "text/markdown"],
  ["html", "text/html"],
  ["htm", "text/html"],
  ["csv", "text/csv"],
  ["json", "application/json"],
  ["xml", "application/xml"],
  ["mp4", "video/mp4"],
  ["m4v", "video/mp4"],
  ["mov", "video/quicktime"],
  ["webm", "video/webm"],
  ["mkv", "video/x-matroska"],
  ["avi", "video/x-msvideo"],
  ["mpg", "video/mpeg"],
  ["mpeg", "video/mpeg"],
  ["mp3", "audio/mpeg"],
  ["wav", "audio/wav"],
  ["m4a", "audio/mp4"],
  ["aac", "audio/aac"],
  ["ogg", "audio/ogg"],
  ["flac", "audio/flac"],
  ["zip", "application/zip"],
  ["docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"],
  ["xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"],
  ["pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"],
]);

export function mimeOfLink(link: string): string | undefined {
  const [path = ""] = link.split(/[?#]/, 1);
  const [, extension = ""] = /^https?:\/\/[^/]+\/.*\.(\w{1,5})$/is.exec(path) ?? [];
  return extensions.get(extension.toLowerCase());
}

const wavNames = new Set(["wav", "x-wav", "wave", "vnd.wave", "x-pn-wav"]);

/** Returns OpenAI's name of an audio format: `wav`, `mp3`. */
export function audioFormat(mime: string): string {
  const [type = ""] = mime.replace(/^audio\//i, "").split(";", 1);
  const name = type.toLowerCase();
  if (wavNames.has(name)) return "wav";
  return name === "mpeg" || name === "mpga" ? "mp3" : name.replace(/^x-/, "");
}

/** Returns the media type of a format in OpenAI's notation. A media type is returned unchanged. */
export const audioMime = (format: string): string => (format.includes("/") ? format : `audio/${format || "wav"}`);
