import { formedRequest, geminiMedia, uploadOf } from "#formats";
import { byteLength, type JsonObject, list, object } from "#json";
import type { FormatConverter } from "../converter.ts";
import { mapParts } from "../map-parts.ts";
import { isEncodedReasoning } from "../reasoning-state.ts";
import { convertUsageToChat } from "./convert-response-to-chat.ts";
import { modelCapabilities, skipSignatureValidation } from "./reasoning.ts";

/** Delimits the events of one stream; created for each stream. */
export type StreamFraming = () => {
  readonly frame: (event: JsonObject) => string;
  readonly end: () => string;
};

/** Some clients split lines at these characters, which JSON.stringify does not escape. */
const lineSeparators = /[\u0085\u2028\u2029]/g;
const escapeCharacter = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** Framing with `alt=sse`. The end of the stream has no event. */
export const serverSentEvents: StreamFraming = () => ({
  frame: (event) => `data: ${JSON.stringify(event).replace(lineSeparators, escapeCharacter)}\n\n`,
  end: () => "",
});

/** Framing without `alt=sse`: the events are the elements of one JSON array. */
export const jsonArray: StreamFraming = () => {
  let hasElements = false;
  return {
    frame(event) {
      const separator = hasElements ? ",\r\n" : "[";
      hasElements = true;
      return separator + JSON.stringify(event);
    },
    end: () => (hasElements ? "\n]" : "[]"),
  };
};

export const resolveUploads: FormatConverter["resolveUploads"] = (request, resolve) => {
  const resolvePart = (part: JsonObject, path: string): JsonObject => {
    for (const media of geminiMedia(part, path)) {
      const ref = uploadOf(media);
      if (!ref) continue;
      const { inlineData: _, fileData: __, ...rest } = part;
      const { mime: mimeType, address, base64 } = resolve(ref);
      return /^data:/i.test(address)
        ? { ...rest, inlineData: { mimeType, data: base64 } }
        : { ...rest, fileData: { mimeType, fileUri: address } };
    }
    return mapParts(part, ["functionResponse", "parts"], resolvePart, path);
  };
  const resolved = mapParts(object(formedRequest(request)), ["contents", "parts"], resolvePart);
  return mapParts(resolved, ["systemInstruction", "parts"], resolvePart);
};

function outputBytes(event: JsonObject): number {
  let bytes = 0;
  for (const { content } of list(event["candidates"]))
    for (const { text, functionCall } of list(object(content)["parts"])) {
      const { name, args } = object(functionCall);
      bytes += byteLength(text) + byteLength(name) + (args == null ? 0 : byteLength(JSON.stringify(args)));
    }
  return bytes;
}

/**
 * Removes `continuationToken`: requests with one are refused, but the provider's client would send it automatically and
 * discard the answer that it already has.
 */
function withoutContinuation(response: JsonObject): JsonObject {
  const candidates = list(response["candidates"]);
  if (!candidates.some((candidate) => "continuationToken" in candidate)) return response;
  const ended = candidates.map((candidate) => {
    const { continuationToken: _, ...rest } = candidate;
    return rest;
  });
  return { ...response, candidates: ended };
}

const finish = (response: JsonObject, { model }: { readonly model: string }): JsonObject =>
  withoutContinuation("modelVersion" in response ? { ...response, modelVersion: model } : response);

/** Google rejects signatures of other models with a 400; newer models also reject a call without one. */
function withoutForeignState(request: JsonObject, model: string): JsonObject {
  const isForeign = ({ thoughtSignature }: JsonObject) => isEncodedReasoning(thoughtSignature);
  if (!list(request["contents"]).some(({ parts }) => list(parts).some(isForeign))) return request;
  const { signatures } = modelCapabilities(model);
  return mapParts(request, ["contents", "parts"], (part) => {
    if (!isForeign(part)) return part;
    const { thoughtSignature: _, ...unsigned } = part;
    const isCall = signatures && unsigned["functionCall"] !== undefined;
    return isCall ? { ...unsigned, thoughtSignature: skipSignatureValidation } : unsigned;
  });
}

export const native = (framing: StreamFraming): FormatConverter["native"] => ({
  withoutForeignState: (raw, model) => withoutForeignState(object(formedRequest(raw)), model),
  prepare(raw, { model, cap }) {
    const { model: _, ...request } = withoutForeignState(object(formedRequest(raw)), model);
    const generationConfig = { ...object(request["generationConfig"]), maxOutputTokens: cap };
    // All tenants share the operator's account at the provider, so nothing may be stored there.
    return { ...request, generationConfig, store: false };
  },
  finish,
  usage: ({ usageMetadata }) => convertUsageToChat(usageMetadata),
  stream(identity) {
    const { frame, end } = framing();
    let usage: unknown;
    let bytes = 0;
    return {
      write(event) {
        // The provider adapter throws errors of the stream.
        if (event["error"] != null) return "";
        if (event["usageMetadata"] != null) usage = event["usageMetadata"];
        bytes += outputBytes(event);
        return frame(finish(event, identity));
      },
      usage: () => convertUsageToChat(usage),
      outputBytes: () => bytes,
      end,
    };
  },
});
