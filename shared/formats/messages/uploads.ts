import { type Loose, object } from "../loose.ts";
import type { UploadRef } from "../types.ts";
import { isUploadId, type Placed } from "../uploads.ts";

/** By the type of a source, the field that has its content. */
const fieldOf = new Map<unknown, string>([
  ["base64", "data"],
  ["url", "url"],
  ["file", "file_id"],
]);

/** The upload that the source of an image or a document names. */
export function sourceUpload(block: Loose, at: string): UploadRef | undefined {
  const source = object(block["source"]);
  const field = fieldOf.get(source["type"]);
  const id = field === undefined ? undefined : source[field];
  if (!isUploadId(id)) return undefined;
  return { id, param: `${at}.source.${field}`, ...(block["type"] === "image" && { kind: "image" as const }) };
}

function placeBlock(block: Loose, at: string, placed: (ref: UploadRef) => Placed): Loose {
  const ref = sourceUpload(block, at);
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

const placeBlocks = (blocks: readonly unknown[], at: string, placed: (ref: UploadRef) => Placed): Loose[] =>
  blocks.map((block, b) => placeBlock(object(block), `${at}[${b}]`, placed));

/** The request with each upload's content in the place of its id; `param` of the references as `parse` gave it. */
export function placeMessagesUploads(request: Loose, placed: (ref: UploadRef) => Placed): Loose {
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
