import { invalidValue } from "#errors";
import { byteLength, isSet, type JsonObject, list, object, strings, text } from "#json";
import { providerTool, refuse, storedAtProvider } from "../errors.ts";
import { type Measure, measureMedia, newMeasure } from "../measure.ts";
import { checkLinkLength } from "../media-part.ts";
import type { MediaSource } from "../media-source.ts";
import type { Feature, PartKind } from "../types.ts";
import type { GeminiRequest } from "./request.ts";

const storedDataFields = ["cachedContent", "generationOutputConfig"];
/** The cost of these fields has no bound: they select another model or continue an earlier response. */
const unboundedFields = ["continuationToken", "routingConfig", "modelSelectionConfig"];

export function refuseUnsupported(request: GeminiRequest, path: string): void {
  const refuseFields = (holder: JsonObject, holderPath: string) => {
    for (const field of storedDataFields) if (isSet(holder[field])) throw storedAtProvider(`${holderPath}${field}`);
    for (const field of unboundedFields)
      if (isSet(holder[field])) throw invalidValue(`${holderPath}${field}`, `${holderPath}${field} is not supported.`);
  };
  refuseFields(request, path);
  refuseFields(object(request.generationConfig), `${path}generationConfig.`);
}

function addModality(name: string, path: string, features: Map<Feature, string>): void {
  if (/^(MODALITY_UNSPECIFIED|TEXT)$/i.test(name)) return;
  if (!/^AUDIO$/i.test(name)) refuse(path, "only TEXT and AUDIO are supported");
  features.set("audio_output", path);
}

export function featuresOf(request: GeminiRequest, path: string): Map<Feature, string> {
  const features = new Map<Feature, string>();
  request.tools?.forEach((tool, t) => {
    for (const [field, value] of Object.entries(tool))
      if (field !== "functionDeclarations" && value !== null) throw providerTool(`${path}tools[${t}].${field}`);
    if (tool.functionDeclarations?.length) features.set("tools", `${path}tools`);
  });

  const config = object(request.generationConfig);
  const configPath = `${path}generationConfig.`;
  for (const name of strings(config["responseModalities"]))
    addModality(name, `${configPath}responseModalities`, features);
  for (const format of list(config["responseFormat"])) {
    for (const [field, value] of Object.entries(format))
      if (isSet(value)) addModality(field, `${configPath}responseFormat`, features);
    if (isSet(object(format["text"])["schema"])) features.set("json", `${configPath}responseFormat`);
  }
  const { responseMimeType } = config;
  if (isSet(responseMimeType) && responseMimeType !== "text/plain")
    features.set("json", `${configPath}responseMimeType`);
  for (const field of ["responseSchema", "responseJsonSchema"])
    if (isSet(config[field])) features.set("json", `${configPath}${field}`);
  if (config["responseLogprobs"] === true) features.set("logprobs", `${configPath}responseLogprobs`);

  const tier = text(request.serviceTier);
  if (tier && !/^(SERVICE_TIER_)?(UNSPECIFIED|STANDARD)$/i.test(tier))
    features.set("service_tier", `${path}serviceTier`);
  return features;
}

export function kindOf(mime: string): PartKind {
  if (/^image\//i.test(mime)) return "image";
  return /^audio\//i.test(mime) ? "audio" : "file";
}

/** Excludes everything that URL parsers disagree on: backslashes, user info, white space. */
const plainUrl = /^https?:\/\/[^\s\\@/?#\p{Cc}]+(?:[/?#][^\s\\\p{Cc}]*)?$/iu;
const providerHosts = /(^|\.)(googleapis\.com|goog|google\.internal)$/;
/** Google Cloud Storage, where the provider reads only public objects. */
const publicStorageHost = "storage.googleapis.com";

/** Refuses links to the provider's own file store, which share a field with web links. */
export function checkLink(address: string, path: string): void {
  checkLinkLength(address, path);
  const host = plainUrl.test(address) && URL.canParse(address) && new URL(address).hostname.replace(/(?<!\.)\.+$/, "");
  if (host === false) {
    if (/^(https?:|upl_)/i.test(address))
      throw invalidValue(path, `${path} must be a plain http or https address, or the id of an upload.`);
    throw storedAtProvider(path, "use a link or an upload");
  } else if (providerHosts.test(host) && host !== publicStorageHost) throw storedAtProvider(path, "use an upload");
}

/** Returns the media of a part, or of a part of a tool result. A part may have both kinds. */
export const geminiMedia = (holder: JsonObject, path: string): readonly (MediaSource & { readonly field: string })[] =>
  (["inlineData", "fileData"] as const).flatMap((field) => {
    const media = holder[field];
    if (typeof media !== "object" || media === null) return [];
    const mime = text(object(media)["mimeType"]);
    const fields = field === "inlineData" ? ({ data: "base64" } as const) : ({ fileUri: "link" } as const);
    return [{ field, kind: kindOf(mime), holder: object(media), path: `${path}.${field}`, fields, mime, checkLink }];
  });

/** Fields of a part whose cost has a bound and that need no work of the provider beyond the model's. */
const partFields: ReadonlySet<string> = new Set([
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

function measureMediaOf(holder: JsonObject, path: string, measure: Measure): void {
  const { mediaProcessing } = holder;
  // Other values let the model choose how much of a video it reads.
  if (isSet(mediaProcessing) && !/^(MEDIA_PROCESSING_UNSPECIFIED|STATIC)$/i.test(text(mediaProcessing)))
    throw invalidValue(`${path}.mediaProcessing`, `${path}.mediaProcessing must be STATIC.`);
  for (const media of geminiMedia(holder, path)) measureMedia(media, media.path, measure);
}

function measurePart(part: JsonObject, path: string, measure: Measure): void {
  for (const [field, value] of Object.entries(part))
    if (!partFields.has(field) && isSet(value)) refuse(`${path}.${field}`, "parts of this type are not supported here");
  measure.textBytes += byteLength(part["text"]);
  measureMediaOf(part, path, measure);
  if (isSet(part["functionCall"])) measure.framed = true;
  const { functionResponse } = part;
  if (typeof functionResponse !== "object" || functionResponse === null) return;
  measure.framed = true;
  list(object(functionResponse)["parts"]).forEach((each, p) => {
    measureMediaOf(each, `${path}.functionResponse.parts[${p}]`, measure);
  });
}

export function measureRequest(request: GeminiRequest, path: string, features: Map<Feature, string>): Measure {
  const measure = newMeasure(features);
  const measureParts = (content: JsonObject, contentPath: string) => {
    list(content["parts"]).forEach((part, p) => measurePart(part, `${contentPath}.parts[${p}]`, measure));
  };
  if (request.systemInstruction) measureParts(request.systemInstruction, `${path}systemInstruction`);
  request.contents.forEach((content, c) => measureParts(content, `${path}contents[${c}]`));
  return measure;
}
