import { invalidValue } from "#errors";
import { dimensionsOf } from "./dimensions.ts";
import { contentOf, headOf, mostSeconds } from "./first-bytes.ts";
import { inlineOf, mimeOfLink } from "./media.ts";
import type { Content, MediaPart, PartKind } from "./types.ts";

/** Decoded so much at a time into the same place: 24 MB are checked in 6 ms, and nothing is left to collect. */
const pieceCharacters = 64 * 1024;
const scratch = Buffer.allocUnsafeSlow((pieceCharacters / 4) * 3);

/** Base64, of either alphabet, with or without its padding. What is none of it is not decoded, so bytes are missing. */
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
/** Sound without a container has no mark that it could be known by. */
const bareSound = /^audio\/(pcm|pcm16|l16|l8|basic|mulaw|alaw|g711|pcmu|pcma|x-mulaw|x-alaw)$/;

const plainType = (mime: string): string => (mime.toLowerCase().split(";", 1)[0] ?? "").trim();

/** What a type says of a file; undefined where it says nothing. */
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

function refuse(at: string, said: string): never {
  throw invalidValue(at, `${at}: ${said}.`);
}

/** What a file is, if its bytes may be what its type says. */
function agreed(declared: Content | undefined, found: Content | undefined, mime: string, at: string): Content {
  if (declared === undefined) return found ?? "other";
  if (found === declared) return found;
  // Recordings come in containers of films.
  if (declared === "audio" && found === "video") return found;
  if (declared === "audio" && found === undefined && bareSound.test(plainType(mime))) return declared;
  // One that is named for sound may show something all the same.
  if (declared === "video" && found === "audio") return declared;
  // Neither a text nor most documents have a mark that is known.
  if (found === undefined && (declared === "text" || declared === "other")) return declared;
  return refuse(at, `the data is not ${nameOf[declared]}, as its type ${shown(mime)} says`);
}

/**
 * A part whose bytes are in the request: that they are base64, and what their type and the field say. Of the bytes the
 * first are looked at; what they are not is refused, because a part is bounded and billed as what it is.
 */
export function inlinePart(kind: PartKind, mime: string, data: string, at: string): MediaPart {
  if (!isBase64(data)) refuse(at, "the data must be base64");
  const declared = declaredContent(mime);
  if (kind !== "file" && declared !== undefined && declared !== kind)
    refuse(at, `must have the type of ${nameOf[kind]}, not ${shown(mime)}`);
  const head = headOf(data);
  const bytes = bytesOf(data);
  const found = contentOf(head) ?? (declared === "pdf" && head.includes("%PDF-") ? declared : undefined);
  const content = agreed(declared ?? (kind === "file" ? undefined : kind), found, mime || kind, at);
  // The frames of a GIF may be larger than it says.
  const dimensions = content === "image" && !data.startsWith("R0lG") ? dimensionsOf(data) : undefined;
  const seconds = content === "audio" ? mostSeconds(head, bytes) : undefined;
  return { kind, content, bytes, ...(dimensions && { dimensions }), ...(seconds !== undefined && { seconds }) };
}

/** Films, whatever type they are given: a provider that plays them goes by the address. */
const films = /^https?:\/\/(?:[^/?#]*[.@])?(?:youtube\.com|youtube-nocookie\.com|youtu\.be)\.?(?::\d*)?(?:[/?#]|$)/i;

/** A part that the provider fetches: only its address tells what it is. */
export function linkedPart(kind: PartKind, mime: string, link: string, at: string): MediaPart {
  if (kind === "file") return { kind };
  const ending = mimeOfLink(link);
  const declared = declaredContent(mime) ?? kind;
  const isOther = films.test(link) || declared !== kind || (ending !== undefined && declaredContent(ending) !== kind);
  if (isOther) refuse(at, `must lead to ${nameOf[kind]}`);
  return { kind };
}

/** By a link, or a data address in base64. */
export function addressedPart(kind: PartKind, address: string, at: string): MediaPart {
  if (/^https?:\/\//i.test(address)) return linkedPart(kind, "", address, at);
  if (!/^data:/i.test(address)) refuse(at, "must be an http, https or data address, or the id of an upload");
  const inline = inlineOf(address);
  if (!inline) return refuse(at, "a data address must have its data in base64");
  return inlinePart(kind, inline.mimeType, inline.data, at);
}
