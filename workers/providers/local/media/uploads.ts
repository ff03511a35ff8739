import { createHash } from "node:crypto";
import { type GenerationCall, type InputFile, UpstreamFailure } from "../../provider.ts";
import { describeImageFile } from "../describe-image.ts";

export function uploadOf({ uploads }: GenerationCall, id: string, field: string, kinds: readonly InputFile["kind"][]) {
  const file = uploads.get(id);
  if (!file)
    throw new UpstreamFailure("refused", `${field}: '${id.slice(0, 100)}' is not an upload.`, { param: field });
  if (kinds.includes(file.kind)) return file;
  const message = `${field}: the upload is of kind ${file.kind}, not ${kinds.join(" or ")}.`;
  throw new UpstreamFailure("refused", message, { param: file.param });
}

/** As the providers of image models take. */
const imageLimitBytes = 50 * 1024 * 1024;

/** Hashing more of an image would hold up the event loop. */
const hashedBytes = 1024 * 1024;

export async function readImage(call: GenerationCall, id: string, field: string) {
  const file = uploadOf(call, id, field, ["image"]);
  const bytes = await file.read(imageLimitBytes);
  call.signal.throwIfAborted();
  const description = describeImageFile(bytes, file.param);
  return { description, hash: hashOf(description, bytes.subarray(0, hashedBytes)) };
}

/** SHA-256 of the parts with their lengths. Generated files depend only on such hashes, so equal inputs make equal files. */
export function hashOf(...parts: readonly (string | Buffer)[]): Buffer {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(`${part.length} `).update(part);
  return hash.digest();
}
