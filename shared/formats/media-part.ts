import { refuse } from "./errors.ts";
import { detectContent, dimensionsOf, headerOf, maxSeconds } from "./file-header.ts";
import { inlineOf, mimeOfLink } from "./media-types.ts";
import type { Content, MediaPart, PartKind } from "./types.ts";

/** Decoding in pieces into one buffer checks 24 MB in 6 ms and allocates nothing. */
const pieceCharacters = 64 * 1024;
const scratch = Buffer.allocUnsafeSlow((pieceCharacters / 4) * 3);

/** Checks base64 of either alphabet, padded or not. Buffer skips invalid characters, which shortens the result. */
export function isBase64(data: string): boolean {
  let end = data.length;
  while (end > data.length - 2 && data[end - 1] === "=") end--;
  if (end === 0 || end % 4 === 1) return false;
  for (let at = 0; at < end; at += pieceCharacters) {
    const to = Math.min(end, at + pieceCharacters);
    if (scratch.write(data.slice(at, to), "base64") !== Math.floor(((to - at) * 3) / 4)) return false;
  }
  return true;
}

const bytesOf = (base64: string): number => Math.ceil((base64.length * 3) / 4);

const textTypes =
  /^(text\/|application\/(json|xml|yaml|x-yaml|toml|javascript|typescript|sql|x-sh|rtf)$)|[+](json|xml)$/;
/** Raw audio has no signature. */
const rawAudio = /^audio\/(pcm|pcm16|l16|l8|basic|mulaw|alaw|g711|pcmu|pcma|x-mulaw|x-alaw)$/;

const plainType = (mime: string): string => (mime.toLowerCase().split(";", 1)[0] ?? "").trim();

/** Determines the kind of a file by its media type. Returns undefined if the type is empty or generic. */
function declaredContent(mime: string): Content | undefined {
  const type = plainType(mime);
  if (type === "" || type === "application/octet-stream") return undefined;
  const [family] = type.split("/");
  if (family === "image" || family === "audio" || family === "video") return family;
  if (textTypes.test(type)) return "text";
  if (/^application\/(x-)?pdf$/.test(type)) return "pdf";
  return type === "application/ogg" ? "audio" : "other";
}

const nameOf = { image: "an image", audio: "audio", video: "video", pdf: "a PDF", text: "text", other: "a document" };
const shown = (mime: string): string => `'${mime.slice(0, 64)}'`;

function matchingContent(declared: Content | undefined, found: Content | undefined, mime: string, at: string): Content {
  if (declared === undefined) return found ?? "other";
  if (found === declared) return found;
  // Audio may be in a video container.
  if (declared === "audio" && found === "video") return found;
  if (declared === "audio" && found === undefined && rawAudio.test(plainType(mime))) return declared;
  // A file with an audio brand may also contain video.
  if (declared === "video" && found === "audio") return declared;
  // Text and most documents have no known signature.
  if (found === undefined && (declared === "text" || declared === "other")) return declared;
  return refuse(at, `the data is not ${nameOf[declared]}, as its type ${shown(mime)} says`);
}

/**
 * Creates a part whose bytes are in the request. Refuses data that is not base64, and bytes whose signature contradicts
 * the type or the field, because a part is bounded and billed by its kind.
 */
export function inlinePart(kind: PartKind, mime: string, data: string, at: string): MediaPart {
  if (!isBase64(data)) refuse(at, "the data must be base64");
  const declared = declaredContent(mime);
  if (kind !== "file" && declared !== undefined && declared !== kind)
    refuse(at, `must have the type of ${nameOf[kind]}, not ${shown(mime)}`);
  const head = headerOf(data);
  const bytes = bytesOf(data);
  const found = detectContent(head) ?? (declared === "pdf" && head.includes("%PDF-") ? declared : undefined);
  const content = matchingContent(declared ?? (kind === "file" ? undefined : kind), found, mime || kind, at);
  // The frames of a GIF may be larger than its header says.
  const dimensions = content === "image" && !data.startsWith("R0lG") ? dimensionsOf(data) : undefined;
  const seconds = content === "audio" ? maxSeconds(head, bytes) : undefined;
  return { kind, content, bytes, ...(dimensions && { dimensions }), ...(seconds !== undefined && { seconds }) };
}

/** Video sites. Providers recognize them by their address, regardless of the declared type. */
const videoSites =
  /^https?:\/\/(?:[^/?#]*[.@])?(?:youtube\.com|youtube-nocookie\.com|youtu\.be)\.?(?::\d*)?(?:[/?#]|$)/i;

/** Signed links are long, but parsing a link of several megabytes blocks the event loop. */
const maxLinkLength = 8_192;

export function checkLinkLength(link: string, at: string): void {
  if (link.length > maxLinkLength) refuse(at, `a link must have at most ${maxLinkLength} characters`);
}

/** Creates a part that the provider fetches. Only its address indicates its kind. */
export function linkedPart(kind: PartKind, mime: string, link: string, at: string): MediaPart {
  checkLinkLength(link, at);
  if (kind === "file") return { kind };
  const linkMime = mimeOfLink(link);
  const declared = declaredContent(mime) ?? kind;
  const isOther =
    videoSites.test(link) || declared !== kind || (linkMime !== undefined && declaredContent(linkMime) !== kind);
  if (isOther) refuse(at, `must lead to ${nameOf[kind]}`);
  return { kind };
}

export function addressedPart(kind: PartKind, address: string, at: string): MediaPart {
  if (/^https?:\/\//i.test(address)) return linkedPart(kind, "", address, at);
  if (!/^data:/i.test(address)) refuse(at, "must be an http, https or data address, or the id of an upload");
  const inline = inlineOf(address);
  if (!inline) return refuse(at, "a data address must have its data in base64");
  return inlinePart(kind, inline.mimeType, inline.data, at);
}
