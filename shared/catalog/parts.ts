import type { MediaPart } from "#formats";
import type { Model } from "./types.ts";

/** The smallest patch of a picture that a provider has a token for: 28 pixels each way (others have 32). */
const patchPixels = 28;
/**
 * The densest document that is plausible: pages of a few lines take a kilobyte each, and a byte of compressed text is a
 * token (three to four letters). Denser ones can be made; who counts a document before it is sent finds them.
 */
const pageBytes = 1_024;
/** 4 kbit/s, as for recordings that are transcribed: less than speech is compressed to. */
const recordingBytesPerSecond = 500;

function imageTokens({ mediaTokens: { imagePatch } }: Model, { dimensions }: MediaPart): number {
  if (imagePatch === undefined || dimensions === undefined) return Number.POSITIVE_INFINITY;
  const patches = Math.ceil(dimensions.width / patchPixels) * Math.ceil(dimensions.height / patchPixels);
  return Math.ceil(patches * imagePatch);
}

function audioTokens({ mediaTokens: { audioSecond } }: Model, { seconds, bytes }: MediaPart): number {
  if (audioSecond === undefined || bytes === undefined) return Number.POSITIVE_INFINITY;
  return Math.ceil(Math.ceil(seconds ?? bytes / recordingBytesPerSecond) * audioSecond);
}

function pdfTokens({ mediaTokens: { page } }: Model, { bytes }: MediaPart): number {
  if (page === undefined || bytes === undefined) return Number.POSITIVE_INFINITY;
  return Math.max(1, Math.ceil(bytes / pageBytes)) * page + bytes;
}

/** What is not here has no length that its bytes would tell: a few of them may be hours of film. */
const rules: Partial<Record<NonNullable<MediaPart["content"]>, (model: Model, part: MediaPart) => number>> = {
  image: imageTokens,
  audio: audioTokens,
  pdf: pdfTokens,
  // No tokenizer makes more tokens than there are bytes.
  text: (_, { bytes }) => bytes ?? Number.POSITIVE_INFINITY,
};

/** The most tokens that a part counts as: by what it is, and never more than the catalog's maximum for its kind. */
export function mostPartTokens(model: Model, part: MediaPart): number {
  const { kind, content } = part;
  const rule = content && rules[content];
  const most = model.maxPartTokens;
  // A picture among the files is a picture, where the model has those.
  const own = content === "image" || content === "audio" ? most[content] : undefined;
  const maximum = own ?? most[kind] ?? model.contextLength;
  return rule ? Math.min(rule(model, part), maximum) : maximum;
}

/** Whether some of it may be billed as sound: a film has a sound track, and a link may lead to one. */
export const mayHaveSound = ({ kind, content }: MediaPart): boolean =>
  content === undefined ? kind !== "image" : content === "audio" || content === "video" || content === "other";
