/** Parts and messages of chat requests, for the formats that are converted to them. */
import { isUploadId } from "#formats";
import { type JsonObject, text } from "#json";

export const textPart = (value: string): JsonObject => ({ type: "text", text: value });
export const imagePart = (url: string): JsonObject => ({ type: "image_url", image_url: { url } });
/** `data` is a link, a data URL, or the id of an upload. */
export const filePart = (data: string, filename = "document.pdf"): JsonObject => ({
  type: "file",
  file: isUploadId(data) ? { file_id: data } : { filename, file_data: data },
});

const isText = (part: JsonObject) => part["type"] === "text";

/** A single text part becomes a string. */
export function contentOf(parts: readonly JsonObject[]): unknown {
  const [only] = parts;
  return parts.length === 1 && only && isText(only) ? only["text"] : parts;
}

/** Tool messages in chat are text, so media in results move to the user message that follows. */
export const resultMedia = (id: string, media: readonly JsonObject[]): readonly JsonObject[] =>
  media.length > 0 ? [textPart(`Of the result of ${id}:`), ...media] : [];

/** The text of a tool's result, and the parts for the user message after it. */
export function splitResult(id: string, parts: readonly JsonObject[]) {
  const texts = parts.filter(isText).map((part) => text(part["text"]));
  return {
    resultText: texts.join("\n"),
    media: resultMedia(
      id,
      parts.filter((part) => !isText(part)),
    ),
  };
}

export const withSystem = (system: string, messages: readonly JsonObject[]): readonly JsonObject[] =>
  system ? [{ role: "system", content: system }, ...messages] : messages;
