import { invalidValue } from "#errors";
import { isSet, type JsonObject, list, object, strings, text } from "../json.ts";
import type { Feature } from "../types.ts";
import type { GeminiRequest } from "./request.ts";

/** Tenants share the operator's provider key: what is kept at the provider under a name may be another tenant's. */
const stored = ["cachedContent", "generationOutputConfig"];
/** Orders that the bound and the bill know nothing of: another model, or an answer that goes on from an earlier one. */
const unbounded = ["continuationToken", "routingConfig", "modelSelectionConfig"];

function refuseFields(holder: JsonObject, at: string): void {
  for (const field of stored)
    if (isSet(holder[field]))
      throw invalidValue(
        `${at}${field}`,
        `${at}${field}: what is kept at the provider cannot be used here; send it itself.`,
      );
  for (const field of unbounded)
    if (isSet(holder[field])) throw invalidValue(`${at}${field}`, `${at}${field} is not supported.`);
}

export function refuseStored(request: GeminiRequest, at: string): void {
  refuseFields(request, at);
  refuseFields(object(request.generationConfig), `${at}generationConfig.`);
}

function noteTools({ tools }: GeminiRequest, at: string, features: Map<Feature, string>): void {
  tools?.forEach((tool, t) => {
    for (const [field, value] of Object.entries(tool))
      if (field !== "functionDeclarations" && value !== null)
        throw invalidValue(
          `${at}tools[${t}].${field}`,
          `${at}tools[${t}].${field}: tools that the provider runs are not supported.`,
        );
    if (tool.functionDeclarations?.length) features.set("tools", `${at}tools`);
  });
}

function noteModality(name: string, at: string, features: Map<Feature, string>): void {
  if (/^(MODALITY_UNSPECIFIED|TEXT)$/i.test(name)) return;
  if (!/^AUDIO$/i.test(name)) throw invalidValue(at, `${at}: only TEXT and AUDIO are supported.`);
  features.set("audio_output", at);
}

function noteOutput(config: JsonObject, at: string, features: Map<Feature, string>): void {
  for (const name of strings(config["responseModalities"])) noteModality(name, `${at}responseModalities`, features);
  for (const format of list(config["responseFormat"])) {
    for (const [field, value] of Object.entries(format))
      if (isSet(value)) noteModality(field, `${at}responseFormat`, features);
    if (isSet(object(format["text"])["schema"])) features.set("json", `${at}responseFormat`);
  }
  const { responseMimeType } = config;
  if (isSet(responseMimeType) && responseMimeType !== "text/plain") features.set("json", `${at}responseMimeType`);
  for (const field of ["responseSchema", "responseJsonSchema"])
    if (isSet(config[field])) features.set("json", `${at}${field}`);
  if (config["responseLogprobs"] === true) features.set("logprobs", `${at}responseLogprobs`);
}

/** Refuses what costs extra without a price, and notes what is not everywhere. */
export function featuresOf(request: GeminiRequest, at: string): Map<Feature, string> {
  const features = new Map<Feature, string>();
  noteTools(request, at, features);
  noteOutput(object(request.generationConfig), `${at}generationConfig.`, features);
  const tier = text(request.serviceTier);
  if (tier && !/^(SERVICE_TIER_)?(UNSPECIFIED|STANDARD)$/i.test(tier)) features.set("service_tier", `${at}serviceTier`);
  return features;
}
