import { type Loose, object } from "../loose.ts";
import { list, text } from "../read.ts";
import type { UploadRef } from "../types.ts";
import { isUploadId, type Placed } from "../uploads.ts";
import { kindOf } from "./media.ts";
import { formedRequest } from "./names.ts";

const holderOf = { inlineData: "data", fileData: "fileUri" } as const;

/** The upload that a part's media name in the field where they have their content. */
export function mediaUpload(media: Loose, field: keyof typeof holderOf, at: string): UploadRef | undefined {
  const holder = holderOf[field];
  const id = media[holder];
  if (!isUploadId(id)) return undefined;
  const kind = kindOf(text(media["mimeType"]));
  return { id, param: `${at}.${holder}`, ...(kind !== "file" && { kind }) };
}

function placePart(part: Loose, at: string, placed: (ref: UploadRef) => Placed): Loose {
  for (const field of ["inlineData", "fileData"] as const) {
    const ref = mediaUpload(object(part[field]), field, `${at}.${field}`);
    if (!ref) continue;
    const { inlineData: _, fileData: __, ...rest } = part;
    const { mime: mimeType, address, base64 } = placed(ref);
    return /^data:/i.test(address)
      ? { ...rest, inlineData: { mimeType, data: base64 } }
      : { ...rest, fileData: { mimeType, fileUri: address } };
  }
  const result = object(part["functionResponse"]);
  if (!Array.isArray(result["parts"])) return part;
  return { ...part, functionResponse: { ...result, parts: placeParts(result, `${at}.functionResponse`, placed) } };
}

const placeParts = ({ parts }: Loose, at: string, placed: (ref: UploadRef) => Placed): Loose[] =>
  list(parts).map((part, p) => placePart(part, `${at}.parts[${p}]`, placed));

/** The request with each upload's content in the place of its id; `param` of the references as `parse` gave it. */
export function placeGeminiUploads(request: Loose, placed: (ref: UploadRef) => Placed): Loose {
  const formed = object(formedRequest(request));
  const place = (content: Loose, at: string): Loose =>
    Array.isArray(content["parts"]) ? { ...content, parts: placeParts(content, at, placed) } : content;
  const { contents, systemInstruction } = formed;
  return {
    ...formed,
    ...(Array.isArray(contents) && { contents: list(contents).map((each, c) => place(each, `contents[${c}]`)) }),
    ...(systemInstruction != null && { systemInstruction: place(object(systemInstruction), "systemInstruction") }),
  };
}
