/**
 * Chat-completions is the hub: converting it to and from itself only fills in what compatible servers omit. Source: OpenAI's
 * public API reference. Throws `invalidValue` for what chat upstreams do not support.
 */
import { audioFormat, chatMedia, refuse, uploadOf } from "#formats";
import { type JsonObject, list, object, text } from "#json";
import { type FormatConverter, ignoredParams, type UpstreamTarget } from "../converter.ts";
import { mapParts } from "../map-parts.ts";
import { applyQuirks } from "./apply-quirks.ts";
import { chatStream, completeChat } from "./complete-chat.ts";
import { RepeatedChunk } from "./repeated-chunk.ts";

function refuseLinks({ messages }: JsonObject): void {
  list(messages).forEach(({ content }, m) => {
    list(content).forEach(({ type, file }, c) => {
      if (type !== "file" || !/^https?:/i.test(text(object(file)["file_data"]))) return;
      refuse(`messages[${m}].content[${c}].file.file_data`, "this model supports files as bytes, not by a link");
    });
  });
}

/**
 * Converts a request from another format. An effort of `none` is dropped: models that do not reason refuse it, and chat
 * models that do reason only on request.
 */
const convertRequestFromChat: FormatConverter["requestFromChat"] = (request, { quirks } = {}) => {
  refuseLinks(request);
  const ignored = ignoredParams();
  const { reasoning_effort, ...rest } = applyQuirks(request, quirks, ignored);
  if (reasoning_effort === "none") ignored.add("reasoning_effort", reasoning_effort);
  const isSent = reasoning_effort !== undefined && reasoning_effort !== "none";
  return { request: isSent ? { ...rest, reasoning_effort } : rest, ignored: ignored.names() };
};

/** Sets the model and the output cap of the upstream. */
export function toUpstream(request: JsonObject, { model, cap, capField }: UpstreamTarget): JsonObject {
  const { max_tokens: _, max_completion_tokens: __, ...rest } = request;
  return cap === undefined ? { ...rest, model } : { ...rest, model, [capField]: cap };
}

const resolveUploads: FormatConverter["resolveUploads"] = (request, resolve) =>
  mapParts(request, ["messages", "content"], (part, path) => {
    const ref = uploadOf(chatMedia(part, path));
    if (!ref) return part;
    const { mime, address, base64 } = resolve(ref);
    switch (part["type"]) {
      case "image_url":
        return { ...part, image_url: { ...object(part["image_url"]), url: address } };
      case "input_audio":
        return { ...part, input_audio: { ...object(part["input_audio"]), data: base64, format: audioFormat(mime) } };
      default: {
        const { file_id: _, file_data: __, ...file } = object(part["file"]);
        return { ...part, file: { filename: ref.id, ...file, file_data: address } };
      }
    }
  });

export { failureOfChoices, normalizeAnswer } from "./normalize-answer.ts";
export { chunkParser } from "./repeated-chunk.ts";

export const chatConverter: FormatConverter = {
  resolveUploads,
  requestToChat: (request) => ({ request, ignored: [] }),
  callerFields: {},
  responseFromChat: (answer) => answer,
  streamFromChat: chatStream,
  requestFromChat: convertRequestFromChat,
  responseToChat: (answer) => answer,
  // The writer of the caller's format reads the usage from the chunks.
  streamToChat: () => ({
    write: (chunk) => [chunk instanceof RepeatedChunk ? chunk.toChunk() : chunk],
    usage: () => undefined,
  }),
  native: {
    prepare: (request, target, ignored) => applyQuirks(toUpstream(request, target), target.quirks, ignored),
    finish: completeChat,
    usage: ({ usage }) => usage,
    stream: chatStream,
  },
};
