import { type JsonObject, object } from "../loose.ts";
import type { UploadRef } from "../types.ts";
import { isUploadId } from "../uploads.ts";

/** By the type of a source, the field that has its content. */
const fieldOf = new Map<unknown, string>([
  ["base64", "data"],
  ["url", "url"],
  ["file", "file_id"],
]);

/** The upload that the source of an image or a document names. */
export function messagesUpload(block: JsonObject, at: string): UploadRef | undefined {
  const source = object(block["source"]);
  const field = fieldOf.get(source["type"]);
  const id = field === undefined ? undefined : source[field];
  if (!isUploadId(id)) return undefined;
  return { id, param: `${at}.source.${field}`, ...(block["type"] === "image" && { kind: "image" as const }) };
}
