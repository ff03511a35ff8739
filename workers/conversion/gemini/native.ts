import { byteLength, formedRequest, type JsonObject, list, object } from "#formats";
import type { FormatConverter, StreamWriter } from "../converter.ts";
import type { Framing } from "./framing.ts";
import { chatUsage } from "./usage.ts";

const argumentBytes = (args: unknown): number => (args == null ? 0 : byteLength(JSON.stringify(args)));

/** UTF-8 bytes of what an event says. */
function eventBytes(event: JsonObject): number {
  let bytes = 0;
  for (const { content } of list(event["candidates"]))
    for (const { text, functionCall } of list(object(content)["parts"])) {
      const { name, args } = object(functionCall);
      bytes += byteLength(text) + byteLength(name) + argumentBytes(args);
    }
  return bytes;
}

/**
 * Without what an answer could be gone on from: a request that has it is refused, and the provider's client makes one by
 * itself, and throws away what it had.
 */
function final(answer: JsonObject): JsonObject {
  const candidates = list(answer["candidates"]);
  if (!candidates.some((candidate) => "continuationToken" in candidate)) return answer;
  const ended = candidates.map((candidate) => {
    const { continuationToken: _, ...rest } = candidate;
    return rest;
  });
  return { ...answer, candidates: ended };
}

/** With our model id in the place of the provider's. */
const named = (answer: JsonObject, { model }: { readonly model: string }): JsonObject =>
  final("modelVersion" in answer ? { ...answer, modelVersion: model } : answer);

const stream =
  (framing: () => Framing) =>
  (ours: { readonly model: string }): StreamWriter => {
    const { frame, end } = framing();
    let usage: unknown;
    let bytes = 0;
    return {
      write(event) {
        // A failure is the provider's to throw.
        if (event["error"] != null) return "";
        if (event["usageMetadata"] != null) usage = event["usageMetadata"];
        bytes += eventBytes(event);
        return frame(named(event, ours));
      },
      usage: () => chatUsage(usage),
      outputBytes: () => bytes,
      end,
    };
  };

export const native = (framing: () => Framing): FormatConverter["native"] => ({
  /** The model goes into the path. Nothing is kept at the provider, for whom all tenants are one. */
  prepare(raw, { cap }) {
    const { model: _, ...request } = object(formedRequest(raw));
    const generationConfig = { ...object(request["generationConfig"]), maxOutputTokens: cap };
    return { ...request, generationConfig, store: false };
  },
  finish: named,
  usage: (answer) => chatUsage(answer["usageMetadata"]),
  stream: stream(framing),
});
