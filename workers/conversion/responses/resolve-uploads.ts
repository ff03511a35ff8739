import { audioFormat, type JsonObject, object, responsesUpload, type UploadRef } from "#formats";
import { type ResolvedUpload } from "../converter.ts";

type Resolve = (ref: UploadRef) => ResolvedUpload;

/** The fields of an item that may hold parts. */
const partLists = ["content", "output"] as const;

function resolvePart(part: JsonObject, path: string, resolve: Resolve): JsonObject {
  const ref = responsesUpload(part, path);
  if (!ref) return part;
  const { mime, address, base64 } = resolve(ref);
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

/** References have the same `param` as those that `parse` returned. */
export function resolveUploads(request: JsonObject, resolve: Resolve): JsonObject {
  if (!Array.isArray(request["input"])) return request;
  const input = request["input"].map((value: unknown, i) => {
    let item = object(value);
    for (const field of partLists) {
      if (!Array.isArray(item[field])) continue;
      const parts = item[field].map((part: unknown, p) =>
        resolvePart(object(part), `input[${i}].${field}[${p}]`, resolve),
      );
      item = { ...item, [field]: parts };
    }
    return item;
  });
  return { ...request, input };
}
