import { type GenerationCall, type InputFile, UpstreamFailure } from "../../provider.ts";
import { describeImageFile } from "../images.ts";

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

/** As much of an image is hashed: of all of it that would take too long at a time. */
export const seedBytes = 1024 * 1024;

export interface SeenImage {
  readonly bytes: Buffer;
  /** Kind, size in pixels, and bytes. */
  readonly description: string;
}

export async function seeImage(call: GenerationCall, id: string, field: string): Promise<SeenImage> {
  const file = uploadOf(call, id, field, ["image"]);
  const bytes = await file.read(imageLimitBytes);
  call.signal.throwIfAborted();
  return { bytes, description: describeImageFile(bytes, file.param) };
}
