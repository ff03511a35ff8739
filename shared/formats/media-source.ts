import { isSet, type JsonObject, object, text } from "#json";
import { need, refuse } from "./errors.ts";
import { addressedPart, inlinePart, linkedPart } from "./media-part.ts";
import { audioMime } from "./media-types.ts";
import type { MediaPart, PartKind, UploadRef } from "./types.ts";
import { uploadIn } from "./uploads.ts";

/** The content that a field may hold other than the id of an upload. `file` is base64 or an address. */
type ContentForm = "base64" | "address" | "link" | "file" | "nothing";

/** The location of a part's media. Each format defines it once, for measuring requests and for replacing uploads. */
export interface MediaSource {
  readonly kind: PartKind;
  readonly holder: JsonObject;
  readonly path: string;
  /** The fields of the holder that may contain the content. Only one may be set, unless one names an upload. */
  readonly fields: Readonly<Record<string, ContentForm>>;
  /** The declared type of base64 or of a link. */
  readonly mime?: string;
  /** Throws for a link that must not be followed. */
  readonly checkLink?: (link: string, path: string) => void;
}

/** Returns the upload that a part refers to instead of containing its content. */
export const uploadOf = (source: MediaSource | undefined): UploadRef | undefined =>
  source &&
  uploadIn(source.holder, Object.keys(source.fields), source.path, source.kind === "file" ? undefined : source.kind);

/** Returns the content itself, for the bound of its cost, and the length of its field. */
export function mediaPartOf(source: MediaSource): { readonly part: MediaPart; readonly characters: number } {
  const { kind, holder, path, fields, checkLink } = source;
  const contents = Object.keys(fields).filter((field) => fields[field] !== "nothing");
  const [field = contents[0] ?? "", other] = contents.filter((each) => isSet(holder[each]));
  // It is unknown which of them the provider reads.
  if (other !== undefined) refuse(`${path}.${other}`, `use either ${other} or ${field}, not both`);
  const content = need(holder, field, path);
  const at = `${path}.${field}`;
  const form = fields[field] === "file" && /^(https?|data):/i.test(content) ? "address" : fields[field];
  if (form === "link") checkLink?.(content, at);
  const part =
    form === "link"
      ? linkedPart(kind, source.mime ?? "", content, at)
      : form === "address"
        ? addressedPart(kind, content, at)
        : inlinePart(kind, source.mime ?? "", content, at);
  return { part, characters: content.length };
}

/** OpenAI's `input_audio`, which chat and Responses have in common. */
export const inputAudio = (part: JsonObject, at: string): MediaSource => {
  const holder = object(part["input_audio"]);
  const mime = audioMime(text(holder["format"]));
  return { kind: "audio", holder, path: `${at}.input_audio`, fields: { data: "base64" }, mime };
};
