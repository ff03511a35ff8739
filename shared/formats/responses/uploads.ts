import { type Loose, object } from "../loose.ts";
import { audioFormat } from "../media.ts";
import type { UploadRef } from "../types.ts";
import { isUploadId, type Placed } from "../uploads.ts";

/** The fields in which a part names its content. */
const fieldsOf = new Map<unknown, readonly string[]>([
  ["input_image", ["image_url", "file_id"]],
  ["input_file", ["file_id", "file_data", "file_url"]],
]);

/** The upload that a part of a message, or of a tool's result, names. */
export function partUpload(part: Loose, at: string): UploadRef | undefined {
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

/** The fields of an item that may hold parts. */
const partLists = ["content", "output"] as const;

function placePart(part: Loose, at: string, placed: (ref: UploadRef) => Placed): Loose {
  const ref = partUpload(part, at);
  if (!ref) return part;
  const { mime, address, base64 } = placed(ref);
  const { image_url: _, file_id: __, file_data: ___, file_url: ____, ...rest } = part;
  switch (part["type"]) {
    case "input_image":
      return { ...rest, image_url: address };
    case "input_audio":
      return { ...rest, input_audio: { ...object(part["input_audio"]), data: base64, format: audioFormat(mime) } };
    default:
      return /^data:/i.test(address)
        ? { filename: ref.id, ...rest, file_data: address }
        : { ...rest, file_url: address };
  }
}

/** The request with each upload's content in the place of its id; `param` of the references as `parse` gave it. */
export function placeResponsesUploads(request: Loose, placed: (ref: UploadRef) => Placed): Loose {
  if (!Array.isArray(request["input"])) return request;
  const input = request["input"].map((value: unknown, i) => {
    let item = object(value);
    for (const field of partLists) {
      if (!Array.isArray(item[field])) continue;
      const parts = item[field].map((part: unknown, p) =>
        placePart(object(part), `input[${i}].${field}[${p}]`, placed),
      );
      item = { ...item, [field]: parts };
    }
    return item;
  });
  return { ...request, input };
}
