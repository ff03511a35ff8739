import { invalidValue } from "#errors";
import type { JsonObject } from "./loose.ts";
import type { CallSize, Feature, MediaPart, PartKind, UploadRef } from "./types.ts";
import { addUpload } from "./uploads.ts";

/** What is found in a request while its content is walked. */
export interface Measure {
  readonly parts: MediaPart[];
  readonly uploads: UploadRef[];
  readonly features: Map<Feature, string>;
  cacheWrites?: CallSize["cacheWrites"];
  mediaBytes: number;
  textBytes: number;
  /** Calls and results are written out in the prompt much as they stand in the body. */
  framed: boolean;
}

export const newMeasure = (features: Map<Feature, string>): Measure => ({
  parts: [],
  uploads: [],
  features,
  mediaBytes: 0,
  textBytes: 0,
  framed: false,
});

/** A part whose bytes are an upload's. */
export function addUploaded(measure: Measure, kind: PartKind, upload: UploadRef): void {
  addUpload(measure.uploads, upload);
  measure.parts.push({ kind, upload: upload.id });
}

/** A part whose bytes, if the request carries them, take so many characters of it. */
export function addPart(measure: Measure, part: MediaPart, characters: number): void {
  measure.parts.push(part);
  if (part.bytes !== undefined) measure.mediaBytes += characters;
}

/** What the media and the breakpoints of a request add to its size. */
export const measuredSize = ({ parts, cacheWrites }: Measure): Pick<CallSize, "parts" | "cacheWrites"> => ({
  parts,
  ...(cacheWrites && { cacheWrites }),
});

/** A field that must be a text. */
export function need(holder: JsonObject, field: string, at: string): string {
  const value = holder[field];
  if (typeof value !== "string") throw invalidValue(`${at}.${field}`, `${at}.${field} must be a string.`);
  return value;
}
