import { type JsonObject, messagesUpload, object, type UploadRef } from "#formats";
import type { ResolvedUpload } from "../converter.ts";

function resolveBlock(block: JsonObject, at: string, resolve: (ref: UploadRef) => ResolvedUpload): JsonObject {
  const ref = messagesUpload(block, at);
  if (ref) {
    const { mime, address, base64 } = resolve(ref);
    const source = /^data:/i.test(address)
      ? { type: "base64", media_type: mime, data: base64 }
      : { type: "url", url: address };
    return { ...block, source };
  }
  // Tool results and documents may have blocks of their own.
  if (Array.isArray(block["content"]))
    return { ...block, content: resolveBlocks(block["content"], `${at}.content`, resolve) };
  const source = object(block["source"]);
  if (!Array.isArray(source["content"])) return block;
  return {
    ...block,
    source: { ...source, content: resolveBlocks(source["content"], `${at}.source.content`, resolve) },
  };
}

const resolveBlocks = (
  blocks: readonly unknown[],
  at: string,
  resolve: (ref: UploadRef) => ResolvedUpload,
): JsonObject[] => blocks.map((block, b) => resolveBlock(object(block), `${at}[${b}]`, resolve));

/** The request with each upload's id replaced by its content. */
export function resolveUploads(request: JsonObject, resolve: (ref: UploadRef) => ResolvedUpload): JsonObject {
  const { messages } = request;
  if (!Array.isArray(messages)) return request;
  return {
    ...request,
    messages: messages.map((value: unknown, m) => {
      const { content } = object(value);
      if (!Array.isArray(content)) return value;
      return { ...object(value), content: resolveBlocks(content, `messages[${m}].content`, resolve) };
    }),
  };
}
