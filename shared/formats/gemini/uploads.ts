import { type JsonObject, text } from "../json.ts";
import type { UploadRef } from "../types.ts";
import { isUploadId } from "../uploads.ts";
import { kindOf } from "./media.ts";

const holderOf = { inlineData: "data", fileData: "fileUri" } as const;

/** The upload that a part's media name in the field where they have their content. */
export function geminiUpload(media: JsonObject, field: keyof typeof holderOf, at: string): UploadRef | undefined {
  const holder = holderOf[field];
  const id = media[holder];
  if (!isUploadId(id)) return undefined;
  const kind = kindOf(text(media["mimeType"]));
  return { id, param: `${at}.${holder}`, ...(kind !== "file" && { kind }) };
}
