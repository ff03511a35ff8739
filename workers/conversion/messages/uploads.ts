import { type JsonObject, messagesUpload, object, type UploadRef } from "#formats";
import type { ResolvedUpload } from "../converter.ts";

function placeBlock(block: JsonObject, at: string, placed: (ref: UploadRef) => ResolvedUpload): JsonObject {
  const ref = messagesUpload(block, at);
  if (ref) {
    const { mime, address, base64 } = placed(ref);
    const source = /^data:/i.test(address)
      ? { type: "base64", media_type: mime, data: base64 }
      : { type: "url", url: address };
    return { ...block, source };
  }
  // Results of tools have blocks, and so have documents that the caller cut up.
  if (Array.isArray(block["content"]))
    return { ...block, content: placeBlocks(block["content"], `${at}.content`, placed) };
  const source = object(block["source"]);
  if (!Array.isArray(source["content"])) return block;
  return { ...block, source: { ...source, content: placeBlocks(source["content"], `${at}.source.content`, placed) } };
}

const placeBlocks = (
  blocks: readonly unknown[],
  at: string,
  placed: (ref: UploadRef) => ResolvedUpload,
): JsonObject[] => blocks.map((block, b) => placeBlock(object(block), `${at}[${b}]`, placed));

/** The request with each upload's content in the place of its id; `param` of the references as `parse` gave it. */
export function placeMessagesUploads(request: JsonObject, placed: (ref: UploadRef) => ResolvedUpload): JsonObject {
  const { messages } = request;
  if (!Array.isArray(messages)) return request;
  return {
    ...request,
    messages: messages.map((value: unknown, m) => {
      const { content } = object(value);
      if (!Array.isArray(content)) return value;
      return { ...object(value), content: placeBlocks(content, `messages[${m}].content`, placed) };
    }),
  };
}
