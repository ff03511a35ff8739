import { formedRequest, geminiUpload, type JsonObject, list, object, type UploadRef } from "#formats";
import { type ResolvedUpload } from "../converter.ts";

type Resolve = (ref: UploadRef) => ResolvedUpload;

function resolvePart(part: JsonObject, path: string, resolve: Resolve): JsonObject {
  for (const field of ["inlineData", "fileData"] as const) {
    const ref = geminiUpload(object(part[field]), field, `${path}.${field}`);
    if (!ref) continue;
    const { inlineData: _, fileData: __, ...rest } = part;
    const { mime: mimeType, address, base64 } = resolve(ref);
    return /^data:/i.test(address)
      ? { ...rest, inlineData: { mimeType, data: base64 } }
      : { ...rest, fileData: { mimeType, fileUri: address } };
  }
  const { functionResponse } = part;
  const resolved = resolveParts(functionResponse, `${path}.functionResponse`, resolve);
  return resolved === functionResponse ? part : { ...part, functionResponse: resolved };
}

/** Of a content, or of a tool's result. */
function resolveParts(holder: unknown, path: string, resolve: Resolve): unknown {
  const { parts } = object(holder);
  if (!Array.isArray(parts)) return holder;
  return { ...object(holder), parts: list(parts).map((part, p) => resolvePart(part, `${path}.parts[${p}]`, resolve)) };
}

/** References have the same `param` as those that `parse` returned. */
export function resolveUploads(request: JsonObject, resolve: Resolve): JsonObject {
  const formed = object(formedRequest(request));
  const { contents, systemInstruction } = formed;
  return {
    ...formed,
    ...(Array.isArray(contents) && {
      contents: list(contents).map((content, c) => resolveParts(content, `contents[${c}]`, resolve)),
    }),
    ...(systemInstruction != null && {
      systemInstruction: resolveParts(systemInstruction, "systemInstruction", resolve),
    }),
  };
}
