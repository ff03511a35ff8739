import { invalidValue, upstreamError } from "#errors";
import {
  audioFormat,
  byteLength,
  errorEvent,
  eventText,
  isSet,
  type JsonObject,
  object,
  responsesUpload,
  text,
} from "#formats";
import type { FormatConverter, ResponseIdentity, StreamWriter } from "../converter.ts";
import { mapParts } from "../map-parts.ts";
import { responseError } from "./convert-response-from-chat.ts";
import { convertUsageToChat } from "./convert-response-to-chat.ts";

export const resolveUploads: FormatConverter["resolveUploads"] = (request, resolve) => {
  const resolvePart = (part: JsonObject, path: string): JsonObject => {
    const ref = responsesUpload(part, path);
    if (!ref) return part;
    const { mime, address, base64 } = resolve(ref);
    const { image_url: _, file_id: __, file_data: ___, file_url: ____, ...rest } = part;
    switch (part["type"]) {
      case "input_image":
        return { ...rest, image_url: address };
      case "input_audio":
        return { ...rest, input_audio: { ...object(part["input_audio"]), data: base64, format: audioFormat(mime) } };
      default:
        return /^data:/i.test(address)
          ? { filename: ref.id, ...rest, file_data: address }
          : { ...rest, file_url: address };
    }
  };
  return mapParts(mapParts(request, ["input", "content"], resolvePart), ["input", "output"], resolvePart);
};

/**
 * Whether a reasoning item has no state of its own. The provider would look it up by its id, where nothing is stored for the
 * caller.
 */
const isStoredReasoning = ({ type, encrypted_content, content }: JsonObject): boolean =>
  type === "reasoning" && !isSet(encrypted_content) && !isSet(content);

const finalEvents: readonly string[] = ["response.completed", "response.incomplete", "response.failed", "error"];

/** Only deltas count: the events at the end repeat them. */
function outputBytes(event: JsonObject): number {
  const type = text(event["type"]);
  if (type.endsWith(".delta")) return byteLength(event["delta"]);
  return type === "response.output_item.added" ? byteLength(object(event["item"])["name"]) : 0;
}

function stream(identity: ResponseIdentity): Required<StreamWriter> {
  let response: JsonObject = {};
  let nextNumber = 0;
  let usage: JsonObject | undefined;
  let bytes = 0;
  let hasEnded = false;

  const fail: Required<StreamWriter>["fail"] = (error) => {
    if (hasEnded) return "";
    hasEnded = true;
    const failed = { ...response, status: "failed", error: responseError(error) };
    return (
      eventText({ type: "response.failed", sequence_number: nextNumber++, response: failed }) +
      errorEvent(error, nextNumber++)
    );
  };
  return {
    write(event) {
      const { type, sequence_number } = event;
      if (typeof type !== "string") return "";
      nextNumber = (typeof sequence_number === "number" ? sequence_number : nextNumber) + 1;
      hasEnded ||= finalEvents.includes(type);
      bytes += outputBytes(event);
      if (typeof event["response"] !== "object" || event["response"] === null) return eventText(event);
      response = { ...event["response"], model: identity.model };
      usage = convertUsageToChat(response["usage"]) ?? usage;
      return eventText({ ...event, response });
    },
    usage: () => usage,
    outputBytes: () => bytes,
    /** The provider writes the last event itself; without one the stream was cut short. */
    end: () => (hasEnded ? "" : fail(upstreamError("The model's stream ended unexpectedly."))),
    fail,
  };
}

export const native: FormatConverter["native"] = {
  prepare(request, { model, cap }) {
    const { input } = request;
    const items = Array.isArray(input) ? input.filter((item: unknown) => !isStoredReasoning(object(item))) : input;
    if (Array.isArray(items) && items.length === 0)
      throw invalidValue("input", "input: has only reasoning without its encrypted content, which is not stored here.");
    return { ...request, input: items, model, ...(cap !== undefined && { max_output_tokens: cap }), store: false };
  },
  finish: (response, { model }) => ({ ...response, model }),
  usage: ({ usage }) => convertUsageToChat(usage),
  stream,
};
