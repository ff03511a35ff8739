import { audioFormat, chatUpload, type JsonObject, object, type UploadRef } from "#formats";
import type { ResolvedUpload } from "../converter.ts";

/** The request with each upload's id replaced by its content. */
export function resolveUploads(request: JsonObject, resolve: (ref: UploadRef) => ResolvedUpload): JsonObject {
  const messages = request["messages"];
  if (!Array.isArray(messages)) return request;
  const resolved = messages.map((message: unknown, m) => {
    const { content } = object(message);
    if (!Array.isArray(content)) return message;
    const parts = content.map((part: unknown, c) => resolvePart(object(part), `messages[${m}].content[${c}]`, resolve));
    return { ...object(message), content: parts };
  });
  return { ...request, messages: resolved };
}

function resolvePart(part: JsonObject, at: string, resolve: (ref: UploadRef) => ResolvedUpload): JsonObject {
  const ref = chatUpload(part, at);
  if (!ref) return part;
  const { mime, address, base64 } = resolve(ref);
  switch (part["type"]) {
    case "image_url":
      return { ...part, image_url: { ...object(part["image_url"]), url: address } };
    case "input_audio":
      return { ...part, input_audio: { ...object(part["input_audio"]), data: base64, format: audioFormat(mime) } };
    default: {
      const { file_id: _, file_data: __, ...file } = object(part["file"]);
      return { ...part, file: { filename: ref.id, ...file, file_data: address } };
    }
  }
}
