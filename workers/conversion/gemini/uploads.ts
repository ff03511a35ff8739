import { formedRequest, geminiUpload, type JsonObject, list, object, type UploadRef } from "#formats";
import type { ResolvedUpload } from "../converter.ts";

function placePart(part: JsonObject, at: string, placed: (ref: UploadRef) => ResolvedUpload): JsonObject {
  for (const field of ["inlineData", "fileData"] as const) {
    const ref = geminiUpload(object(part[field]), field, `${at}.${field}`);
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

const placeParts = ({ parts }: JsonObject, at: string, placed: (ref: UploadRef) => ResolvedUpload): JsonObject[] =>
  list(parts).map((part, p) => placePart(part, `${at}.parts[${p}]`, placed));

/** The request with each upload's content in the place of its id; `param` of the references as `parse` gave it. */
export function placeGeminiUploads(request: JsonObject, placed: (ref: UploadRef) => ResolvedUpload): JsonObject {
  const formed = object(formedRequest(request));
  const place = (content: JsonObject, at: string): JsonObject =>
    Array.isArray(content["parts"]) ? { ...content, parts: placeParts(content, at, placed) } : content;
  const { contents, systemInstruction } = formed;
  return {
    ...formed,
    ...(Array.isArray(contents) && { contents: list(contents).map((each, c) => place(each, `contents[${c}]`)) }),
    ...(systemInstruction != null && { systemInstruction: place(object(systemInstruction), "systemInstruction") }),
  };
}
