import { audioFormat, type JsonObject, object, responsesUpload, type UploadRef } from "#formats";
import type { ResolvedUpload } from "../converter.ts";

/** The fields of an item that may hold parts. */
const partLists = ["content", "output"] as const;

function placePart(part: JsonObject, at: string, placed: (ref: UploadRef) => ResolvedUpload): JsonObject {
  const ref = responsesUpload(part, at);
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
export function placeResponsesUploads(request: JsonObject, placed: (ref: UploadRef) => ResolvedUpload): JsonObject {
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
