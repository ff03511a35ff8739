import { invalidValue, upstreamError } from "#errors";
import {
  audioFormat,
  errorEvent,
  eventText,
  firstWorkerEvent,
  responseError,
  responsesMedia,
  uploadOf,
} from "#formats";
import { byteLength, isObject, type JsonObject, object, text } from "#json";
import {
  type FormatConverter,
  ignoredParams,
  type ResponseIdentity,
  type StreamWriter,
  type TokenEstimate,
} from "../converter.ts";
import { mapParts } from "../map-parts.ts";
import { convertUsageFromChat } from "./convert-response-from-chat.ts";
import { convertUsageToChat } from "./convert-response-to-chat.ts";
import { collectItems } from "./items-so-far.ts";
import { withoutHostedTools } from "./omit-tools.ts";
import { responseId } from "./output-items.ts";
import { includeState, isHollow } from "./reasoning-state.ts";

export const resolveUploads: FormatConverter["resolveUploads"] = (request, resolve) => {
  const resolvePart = (part: JsonObject, path: string): JsonObject => {
    const ref = uploadOf(responsesMedia(part, path));
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

/** The provider stores nothing, and gets the whole input in place of the previous response's id. */
const stateOf = ({ state }: ResponseIdentity): JsonObject =>
  state?.previousResponseId === undefined ? {} : { previous_response_id: state.previousResponseId };

/** The provider's usage with the cost, or an estimate where it reported none. */
function withCost(response: JsonObject, estimate: TokenEstimate): JsonObject {
  const { costUsd, isByok } = estimate;
  if (costUsd === undefined) return response;
  const { usage } = response;
  const extended = { ...object(usage), cost_usd: costUsd, ...(isByok && { is_byok: true }) };
  return { ...response, usage: usage ? extended : convertUsageFromChat(null, estimate) };
}

/** Final events of an answer that is charged. */
const completeEvents: readonly string[] = ["response.completed", "response.incomplete"];
const finalEvents: readonly string[] = ["response.completed", "response.incomplete", "response.failed", "error"];

/** Only deltas count: the events at the end repeat them. */
function outputBytes(event: JsonObject): number {
  const type = text(event["type"]);
  if (type.endsWith(".delta")) return byteLength(event["delta"]);
  return type === "response.output_item.added" ? byteLength(object(event["item"])["name"]) : 0;
}

/** The events that the API writes for a response in the background. */
const eventsOfApi: readonly string[] = ["response.created", "response.queued"];

/** The provider's events for a response in the background: under our id, and numbered without those of the API. */
function streamInBackground(identity: ResponseIdentity): Required<StreamWriter> {
  const identified = { id: responseId(identity), background: true };
  const collected = collectItems();
  let nextNumber = firstWorkerEvent;
  const writer = streamInForeground(identity);
  return {
    ...writer,
    write(event) {
      const response = isObject(event["response"]) && { response: { ...event["response"], ...identified } };
      collected.note(event);
      if (eventsOfApi.includes(text(event["type"]))) return "";
      const written = writer.write({ ...event, ...response, sequence_number: nextNumber });
      if (written !== "") nextNumber++;
      return written;
    },
    itemsSoFar: collected.items,
    end: () => "",
  };
}

const stream = (identity: ResponseIdentity): Required<StreamWriter> =>
  identity.background ? streamInBackground(identity) : streamInForeground(identity);

function streamInForeground(identity: ResponseIdentity): Required<StreamWriter> {
  let response: JsonObject = {};
  let nextNumber = 0;
  let usage: JsonObject | undefined;
  let bytes = 0;
  let hasEnded = false;
  /**
   * The last event, held until the cost is known and the response is stored, so that the caller's next request can refer to
   * it.
   */
  let last: JsonObject | undefined;

  const writeLast = (estimate?: TokenEstimate): string => {
    const event = last;
    last = undefined;
    if (!event) return "";
    return eventText({ ...event, response: estimate ? withCost(response, estimate) : response });
  };
  const fail: Required<StreamWriter>["fail"] = (error) => {
    if (hasEnded) return writeLast();
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
      response = { ...event["response"], model: identity.model, ...stateOf(identity) };
      usage = convertUsageToChat(response["usage"]) ?? usage;
      if (!completeEvents.includes(type)) return eventText({ ...event, response });
      last = event;
      return "";
    },
    usage: () => usage,
    outputBytes: () => bytes,
    /** Returns undefined unless the provider sent a final event. */
    itemsSoFar: () => [],
    response: (estimate) => (last ? withCost(response, estimate) : undefined),
    end: (estimate) => (hasEnded ? writeLast(estimate) : fail(upstreamError("The model's stream ended unexpectedly."))),
    fail,
  };
}

export const native: FormatConverter["native"] = {
  prepare(body, { model, cap, hiddenReasoning }, ignored = ignoredParams()) {
    const { background: _, ...request } = withoutHostedTools(body, ignored);
    const { input } = request;
    const isUsable = (item: unknown) => !isHollow(object(item));
    const hasHollow = Array.isArray(input) && !input.every(isUsable);
    if (hasHollow) {
      if (!input.some(isUsable))
        throw invalidValue(
          "input",
          "input: has only reasoning without its encrypted content, which is not stored here.",
        );
      ignored.add("input.reasoning", true);
    }
    const include = includeState(request["include"], hiddenReasoning);
    return {
      ...request,
      ...(hasHollow && { input: input.filter(isUsable) }),
      ...(include.length > 0 && { include }),
      model,
      ...(cap !== undefined && { max_output_tokens: cap }),
      store: false,
    };
  },
  finish: (response, identity, estimate) =>
    withCost({ ...response, model: identity.model, ...stateOf(identity) }, estimate),
  usage: ({ usage }) => convertUsageToChat(usage),
  stream,
};
