import { fileTypeFromBuffer } from "file-type";
import { unsupportedMediaType } from "#errors";

export const mediaKinds = ["image", "video", "audio"] as const;

export interface MediaType {
  readonly mime: string;
  readonly kind: (typeof mediaKinds)[number];
}

export const unsupportedFile = (param?: string) =>
  unsupportedMediaType("The file is not an image, video or audio file of an accepted type.", param);

/** Accepted types by the name that most providers use, with the aliases of `file-type` and of callers. */
const accepted: Readonly<Record<string, readonly string[]>> = {
  "image/png": ["image/x-png", "image/apng"],
  "image/jpeg": ["image/jpg", "image/pjpeg"],
  "image/gif": [],
  "image/webp": [],
  "image/avif": [],
  "image/heic": ["image/heic-sequence"],
  "image/heif": ["image/heif-sequence"],
  "image/bmp": ["image/x-bmp", "image/x-ms-bmp"],
  "image/tiff": ["image/tif"],
  "video/mp4": ["video/x-m4v", "video/m4v"],
  "video/quicktime": [],
  "video/webm": [],
  "video/x-matroska": ["video/matroska", "video/mkv"],
  "video/mpeg": ["video/mp1s", "video/mp2p", "video/mpg", "video/x-mpeg"],
  "video/x-msvideo": ["video/vnd.avi", "video/avi", "video/msvideo"],
  "video/3gpp": ["video/3gp"],
  "video/3gpp2": ["video/3g2"],
  "audio/mpeg": ["audio/mp3", "audio/x-mp3", "audio/x-mpeg", "audio/mpeg3"],
  "audio/wav": ["audio/x-wav", "audio/wave", "audio/x-pn-wav", "audio/vnd.wave"],
  "audio/flac": ["audio/x-flac"],
  "audio/ogg": ["audio/opus", "audio/vorbis", "audio/x-vorbis+ogg", "application/ogg"],
  "audio/aac": ["audio/x-aac", "audio/aacp", "audio/x-hx-aac-adts"],
  "audio/mp4": ["audio/x-m4a", "audio/m4a", "audio/x-m4b"],
  "audio/aiff": ["audio/x-aiff", "audio/aif"],
  "audio/webm": [],
  "audio/x-matroska": ["audio/matroska"],
};

const byName = new Map<string, MediaType>(
  Object.entries(accepted).flatMap(([mime, aliases]) => {
    const type = { mime, kind: mime.slice(0, 5) as MediaType["kind"] };
    return [mime, ...aliases].map((name) => [name, type] as const);
  }),
);

/** Finds a type by name or alias, ignoring letter case and parameters. */
export const mediaType = (mime: string): MediaType | undefined =>
  byName.get((mime.split(";")[0] ?? "").trim().toLowerCase());

/** Number of leading bytes from which the type is detected. */
export const headBytes = 64 * 1024;

/** Detects the type from the first bytes of a file. Returns undefined if the type is not accepted. */
export async function detect(head: Buffer): Promise<MediaType | undefined> {
  const found = await fileTypeFromBuffer(head);
  const type = found && mediaType(found.mime);
  const audio = type && audioOnly[type.mime];
  return audio?.isAudio(head) ? mediaType(audio.mime) : type;
}

/** Video containers that often contain only audio, such as browser recordings. */
const audioOnly: Readonly<Record<string, { readonly mime: string; isAudio(head: Buffer): boolean }>> = {
  "video/webm": { mime: "audio/webm", isAudio: hasOnlyAudioTracks },
  "video/x-matroska": { mime: "audio/x-matroska", isAudio: hasOnlyAudioTracks },
  "video/mp4": { mime: "audio/mp4", isAudio: hasOnlyAudioHandlers },
};

/** In Matroska, a CodecID is the element 0x86, its length in one byte, then `A_OPUS`, `V_VP9`... */
function hasOnlyAudioTracks(head: Buffer): boolean {
  const text = head.toString("latin1");
  return /\x86[\x81-\xff]A_/.test(text) && !/\x86[\x81-\xff]V_/.test(text);
}

/** In MP4, each track's handler is `soun` or `vide`. Decided only if the head contains the whole index. */
function hasOnlyAudioHandlers(head: Buffer): boolean {
  const at = head.indexOf("moov");
  if (at < 4 || at - 4 + head.readUInt32BE(at - 4) > head.length) return false;
  const index = head.toString("latin1", at, at - 4 + head.readUInt32BE(at - 4));
  return /hdlr[^]{8}soun/.test(index) && !/hdlr[^]{8}vide/.test(index);
}
