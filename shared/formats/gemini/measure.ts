import { invalidValue } from "#errors";
import { byteLength, isSet, type JsonObject, list, text } from "../json.ts";
import { addPart, addUploaded, type Measure, newMeasure } from "../measure.ts";
import { inlinePart, linkedPart } from "../media-part.ts";
import type { Feature } from "../types.ts";
import { checkLink } from "./links.ts";
import { kindOf } from "./media.ts";
import type { GeminiRequest } from "./request.ts";
import { geminiUpload } from "./uploads.ts";

/** What a part may have. All else has no bound that the cost could be worked out from, or is work of the provider's. */
const known: ReadonlySet<string> = new Set([
  "text",
  "thought",
  "thoughtSignature",
  "inlineData",
  "fileData",
  "functionCall",
  "functionResponse",
  "videoMetadata",
  "mediaResolution",
  "mediaProcessing",
  "partMetadata",
  "speechMetadata",
]);

/** `inlineData` and `fileData`, of a part or of a tool's result. */
function measureMedia(holder: JsonObject, at: string, measure: Measure): void {
  // Then the model asks for as much of the film as it likes.
  const { mediaProcessing } = holder;
  if (isSet(mediaProcessing) && !/^(MEDIA_PROCESSING_UNSPECIFIED|STATIC)$/i.test(text(mediaProcessing)))
    throw invalidValue(`${at}.mediaProcessing`, `${at}.mediaProcessing must be STATIC.`);
  for (const field of ["inlineData", "fileData"] as const) {
    const media = holder[field];
    if (typeof media !== "object" || media === null) continue;
    const { mimeType, data, fileUri } = media as JsonObject;
    const kind = kindOf(text(mimeType));
    measure.features.set(kind, `${at}.${field}`);
    const upload = geminiUpload(media as JsonObject, field, `${at}.${field}`);
    if (upload) addUploaded(measure, kind, upload);
    else if (field === "inlineData")
      addPart(measure, inlinePart(kind, text(mimeType), text(data), `${at}.inlineData.data`), text(data).length);
    else {
      checkLink(text(fileUri), `${at}.fileData.fileUri`);
      addPart(measure, linkedPart(kind, text(mimeType), text(fileUri), `${at}.fileData.fileUri`), 0);
    }
  }
}

function measurePart(part: JsonObject, at: string, measure: Measure): void {
  for (const [field, value] of Object.entries(part))
    if (!known.has(field) && isSet(value))
      throw invalidValue(`${at}.${field}`, `${at}.${field}: parts of this type are not supported here.`);
  measure.textBytes += byteLength(part["text"]);
  measureMedia(part, at, measure);
  if (isSet(part["functionCall"])) measure.framed = true;
  const { functionResponse } = part;
  if (typeof functionResponse !== "object" || functionResponse === null) return;
  measure.framed = true;
  list((functionResponse as JsonObject)["parts"]).forEach((each, p) => {
    measureMedia(each, `${at}.functionResponse.parts[${p}]`, measure);
  });
}

/** Notes the media of a request and the bytes that it takes, and refuses what has no bound. */
export function measureRequest(request: GeminiRequest, at: string, features: Map<Feature, string>): Measure {
  const measure = newMeasure(features);
  const all = (content: JsonObject, path: string) => {
    list(content["parts"]).forEach((part, p) => measurePart(part, `${path}.parts[${p}]`, measure));
  };
  if (request.systemInstruction) all(request.systemInstruction, `${at}systemInstruction`);
  request.contents.forEach((content, c) => all(content, `${at}contents[${c}]`));
  return measure;
}
