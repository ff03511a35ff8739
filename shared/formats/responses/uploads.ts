import { type JsonObject, object } from "../json.ts";
import type { UploadRef } from "../types.ts";
import { isUploadId } from "../uploads.ts";

/** The fields in which a part names its content. */
const fieldsOf = new Map<unknown, readonly string[]>([
  ["input_image", ["image_url", "file_id"]],
  ["input_file", ["file_id", "file_data", "file_url"]],
]);

/** The upload that a part of a message, or of a tool's result, names. */
export function responsesUpload(part: JsonObject, at: string): UploadRef | undefined {
  if (part["type"] === "input_audio") {
    const id = object(part["input_audio"])["data"];
    return isUploadId(id) ? { id, param: `${at}.input_audio.data`, kind: "audio" } : undefined;
  }
  for (const field of fieldsOf.get(part["type"]) ?? []) {
    const id = part[field];
    if (!isUploadId(id)) continue;
    return { id, param: `${at}.${field}`, ...(part["type"] === "input_image" && { kind: "image" as const }) };
  }
  return undefined;
}
