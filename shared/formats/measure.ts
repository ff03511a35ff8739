import { invalidValue } from "#errors";
import type { Loose } from "./loose.ts";
import type { Feature, UploadRef } from "./types.ts";

/** What is found in a request while its content is walked. */
export interface Measure {
  readonly parts: Record<"image" | "audio" | "file", number>;
  readonly uploads: UploadRef[];
  readonly features: Map<Feature, string>;
  mediaBytes: number;
  textBytes: number;
  /** Calls and results are written out in the prompt much as they stand in the body. */
  framed: boolean;
}

export const newMeasure = (features: Map<Feature, string>): Measure => ({
  parts: { image: 0, audio: 0, file: 0 },
  uploads: [],
  features,
  mediaBytes: 0,
  textBytes: 0,
  framed: false,
});

/** A field that must be a text. */
export function need(holder: Loose, field: string, at: string): string {
  const value = holder[field];
  if (typeof value !== "string") throw invalidValue(`${at}.${field}`, `${at}.${field} must be a string.`);
  return value;
}
