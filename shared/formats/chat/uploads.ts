import { type JsonObject, object } from "../loose.ts";
import type { UploadRef } from "../types.ts";
import { isUploadId } from "../uploads.ts";

/** The upload that a part of a chat message names, in the field where such a part has its content. */
export function chatUpload(part: JsonObject, at: string): UploadRef | undefined {
  switch (part["type"]) {
    case "image_url": {
      const holder = part["image_url"];
      const id = typeof holder === "string" ? holder : object(holder)["url"];
      return isUploadId(id) ? { id, param: `${at}.image_url.url`, kind: "image" } : undefined;
    }
    case "input_audio": {
      const id = object(part["input_audio"])["data"];
      return isUploadId(id) ? { id, param: `${at}.input_audio.data`, kind: "audio" } : undefined;
    }
    case "file": {
      const { file_id, file_data } = object(part["file"]);
      if (isUploadId(file_id)) return { id: file_id, param: `${at}.file.file_id` };
      return isUploadId(file_data) ? { id: file_data, param: `${at}.file.file_data` } : undefined;
    }
    default:
      return undefined;
  }
}
