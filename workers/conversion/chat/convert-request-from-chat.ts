import { audioFormat, chatUpload, type JsonObject, list, object, refuse, text } from "#formats";
import { type ConvertedRequest, type FormatConverter, type UpstreamTarget } from "../converter.ts";
import { mapParts } from "../map-parts.ts";
import { checkFields, documentedFields } from "./fields.ts";

const withoutExtra = (holder: unknown): JsonObject => {
  const { extra_content: _, ...rest } = object(holder);
  return rest;
};

const hasForeignState = (message: JsonObject): boolean =>
  "reasoning_details" in message ||
  "extra_content" in message ||
  list(message["tool_calls"]).some((call) => "extra_content" in call);

/** Removes the reasoning state of providers with other formats: chat upstreams refuse or ignore these fields. */
export function withoutForeignState(request: JsonObject): JsonObject {
  const { messages } = request;
  if (!Array.isArray(messages) || !messages.some((message) => hasForeignState(object(message)))) return request;
  return {
    ...request,
    messages: messages.map((each: unknown) => {
      const { reasoning_details: _, ...message } = withoutExtra(each);
      const { tool_calls } = message;
      return Array.isArray(tool_calls) ? { ...message, tool_calls: tool_calls.map(withoutExtra) } : message;
    }),
  };
}

function refuseLinks({ messages }: JsonObject): void {
  list(messages).forEach(({ content }, m) => {
    list(content).forEach(({ type, file }, c) => {
      if (type !== "file" || !/^https?:/i.test(text(object(file)["file_data"]))) return;
      refuse(`messages[${m}].content[${c}].file.file_data`, "this model supports files as bytes, not by a link");
    });
  });
}

/**
 * From another format. An effort of `none` is ignored: models that do not reason refuse it, and chat models that do reason
 * only on request.
 */
export function convertRequestFromChat(request: JsonObject): ConvertedRequest {
  refuseLinks(request);
  const { reasoning_effort, ...rest } = withoutForeignState(request);
  if (reasoning_effort === "none") return { request: rest, ignored: ["reasoning_effort"] };
  return { request: reasoning_effort === undefined ? rest : { ...rest, reasoning_effort }, ignored: [] };
}

/** Sets the model and the output cap of the upstream. */
export function toUpstream(request: JsonObject, { model, cap, capField }: UpstreamTarget): JsonObject {
  const { max_tokens: _, max_completion_tokens: __, ...rest } = request;
  return { ...rest, model, [capField]: cap };
}

/** Drops undocumented fields, for upstreams that refuse unknown fields or charge for features behind them. */
export function withoutUnknown(request: JsonObject): ConvertedRequest {
  const ignored = checkFields(request, [], documentedFields);
  const known = Object.entries(request).filter(([field]) => documentedFields.has(field));
  return { request: Object.fromEntries(known), ignored: ignored.names() };
}

export const resolveUploads: FormatConverter["resolveUploads"] = (request, resolve) =>
  mapParts(request, ["messages", "content"], (part, path) => {
    const ref = chatUpload(part, path);
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
