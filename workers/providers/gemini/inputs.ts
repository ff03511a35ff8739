import { type GenerationCall, type InputFile, type JsonObject, UpstreamFailure } from "../provider.ts";

/** What the provider reads. */
const imageTypes: readonly string[] = ["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];

export function refused(param: string, message: string): UpstreamFailure {
  return new UpstreamFailure("refused", `${param}: ${message}`, { param });
}

export function textOf(input: JsonObject, field: string): string {
  const text = input[field];
  if (typeof text === "string" && text !== "") return text;
  throw refused(field, "a text is needed.");
}

/** The pictures that a field names by the ids of uploads. */
export function picturesIn({ input, uploads }: GenerationCall, field: string, most: number): readonly InputFile[] {
  const named = input[field] == null ? [] : [input[field]].flat();
  if (named.length > most) throw refused(field, `this model takes ${most} images at most.`);
  return named.map((id) => {
    const file = typeof id === "string" ? uploads.get(id) : undefined;
    if (!file) throw refused(field, "must be the id of an upload.");
    if (imageTypes.includes(file.mime)) return file;
    throw refused(file.param, `this model does not take ${file.mime.slice(0, 100)}.`);
  });
}

/** An id elsewhere would reach the provider as a text that it does not know. */
export function refuseOthers({ uploads }: GenerationCall, placed: readonly InputFile[]): void {
  for (const file of uploads.values()) if (!placed.includes(file)) throw refused(file.param, "takes no upload.");
}

/** All of them are in memory until they are sent. */
export async function base64Of(files: readonly InputFile[], limitBytes: number): Promise<readonly string[]> {
  const contents: string[] = [];
  let leftBytes = limitBytes;
  for (const file of files) {
    if (file.bytes > leftBytes) throw refused(file.param, `the images together have more than ${limitBytes} bytes.`);
    contents.push(await file.base64(leftBytes));
    leftBytes -= file.bytes;
  }
  return contents;
}
