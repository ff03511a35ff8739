import { audioFormat, chatUpload, type JsonObject, object, type UploadRef } from "#formats";
import type { ResolvedUpload } from "../converter.ts";

const messagesOf = ({ messages }: JsonObject): readonly unknown[] => (Array.isArray(messages) ? messages : []);

/** The request with each upload's content in the place of its id. */
export function placeChatUploads(request: JsonObject, placed: (ref: UploadRef) => ResolvedUpload): JsonObject {
  const messages = messagesOf(request).map((message, m) => {
    const { content } = object(message);
    if (!Array.isArray(content)) return message;
    const parts = content.map((part: unknown, c) => placePart(object(part), `messages[${m}].content[${c}]`, placed));
    return { ...object(message), content: parts };
  });
  return { ...request, messages };
}

function placePart(part: JsonObject, at: string, placed: (ref: UploadRef) => ResolvedUpload): JsonObject {
  const ref = chatUpload(part, at);
  if (!ref) return part;
  const { mime, address, base64 } = placed(ref);
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
