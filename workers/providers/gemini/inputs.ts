import { type GenerationCall, type InputFile, type JsonObject, UpstreamFailure } from "../provider.ts";

/** The types that the provider reads. */
const imageTypes: readonly string[] = ["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];

export function refused(param: string, message: string): UpstreamFailure {
  return new UpstreamFailure("refused", `${param}: ${message}`, { param });
}

export function textIn(input: JsonObject, field: string): string {
  const text = input[field];
  if (typeof text === "string" && text !== "") return text;
  throw refused(field, "a text is needed.");
}

/** The images that a field names by the ids of uploads. */
export function imagesIn({ input, uploads }: GenerationCall, field: string, maxImages: number): readonly InputFile[] {
  const ids = input[field] == null ? [] : [input[field]].flat();
  if (ids.length > maxImages) throw refused(field, `this model takes ${maxImages} images at most.`);
  return ids.map((id) => {
    const file = typeof id === "string" ? uploads.get(id) : undefined;
    if (!file) throw refused(field, "must be the id of an upload.");
    if (imageTypes.includes(file.mime)) return file;
    throw refused(file.param, `this model does not take ${file.mime.slice(0, 100)}.`);
  });
}

/** The id of an upload in any other field would reach the provider as text. */
export function refuseOtherUploads({ uploads }: GenerationCall, used: readonly InputFile[]): void {
  for (const file of uploads.values()) if (!used.includes(file)) throw refused(file.param, "takes no upload.");
}

/** All of them are in memory until they are sent. */
export async function readBase64(files: readonly InputFile[], limitBytes: number): Promise<readonly string[]> {
  const contents: string[] = [];
  let remainingBytes = limitBytes;
  for (const file of files) {
    if (file.bytes > remainingBytes)
      throw refused(file.param, `the images together have more than ${limitBytes} bytes.`);
    contents.push(await file.base64(remainingBytes));
    remainingBytes -= file.bytes;
  }
  return contents;
}
