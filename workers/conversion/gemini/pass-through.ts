import { byteLength, formedRequest, type JsonObject, list, object } from "#formats";
import { type FormatConverter } from "../converter.ts";
import { convertUsageToChat } from "./convert-usage.ts";
import { type StreamFraming } from "./stream-framing.ts";

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
 * Removes `continuationToken`: requests with one are refused, but the provider's client would send one by itself and drop
 * the answer that it has.
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

export const passThrough = (framing: StreamFraming): FormatConverter["native"] => ({
  /** `store: false`, because all tenants share the operator's account at the provider. */
  prepare(raw, { cap }) {
    const { model: _, ...request } = object(formedRequest(raw));
    const generationConfig = { ...object(request["generationConfig"]), maxOutputTokens: cap };
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
