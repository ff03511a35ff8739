import { invalidValue, upstreamError } from "#errors";
import { byteLength, errorEvent, eventText, isSet, type JsonObject, object, text } from "#formats";
import type { FormatConverter, ResponseIdentity } from "../converter.ts";
import { responseError } from "./events.ts";
import type { FailingStreamWriter } from "./stream-from-chat.ts";
import { chatUsage } from "./usage.ts";

/**
 * The provider looks a reasoning item up by its id if it does not carry its state. Nothing is kept there for the caller, so
 * it would be another's or no one's: it is left out.
 */
const isHollow = ({ type, encrypted_content, content }: JsonObject): boolean =>
  type === "reasoning" && !isSet(encrypted_content) && !isSet(content);

const finals: readonly string[] = ["response.completed", "response.incomplete", "response.failed", "error"];

/** What an event says of the output. Its end says nothing new. */
function eventBytes(event: JsonObject): number {
  const type = text(event["type"]);
  if (type.endsWith(".delta")) return byteLength(event["delta"]);
  return type === "response.output_item.added" ? byteLength(object(event["item"])["name"]) : 0;
}

function nativeStream(ours: ResponseIdentity): FailingStreamWriter {
  let response: JsonObject = {};
  let next = 0;
  let usage: JsonObject | undefined;
  let bytes = 0;
  let hasEnded = false;

  const fail: FailingStreamWriter["fail"] = (error) => {
    if (hasEnded) return "";
    hasEnded = true;
    const failed = { ...response, status: "failed", error: responseError(error) };
    return (
      eventText({ type: "response.failed", sequence_number: next++, response: failed }) + errorEvent(error, next++)
    );
  };
  return {
    write(event) {
      const { type, sequence_number } = event;
      if (typeof type !== "string") return "";
      next = typeof sequence_number === "number" ? sequence_number + 1 : next + 1;
      hasEnded ||= finals.includes(type);
      bytes += eventBytes(event);
      if (typeof event["response"] !== "object" || event["response"] === null) return eventText(event);
      response = { ...event["response"], model: ours.model };
      usage = chatUsage(response["usage"]) ?? usage;
      return eventText({ ...event, response });
    },
    usage: () => usage,
    outputBytes: () => bytes,
    /** The provider's own last event is the end; without it the stream broke off. */
    end: () => (hasEnded ? "" : fail(upstreamError("The stream of the model ended before its time."))),
    fail,
  };
}

export const native: FormatConverter["native"] = {
  prepare(request, { model, cap }) {
    const { input } = request;
    const items = Array.isArray(input) ? input.filter((item: unknown) => !isHollow(object(item))) : input;
    if (Array.isArray(items) && items.length === 0)
      throw invalidValue("input", "input: has nothing but reasoning that is kept at the provider.");
    return {
      ...request,
      input: items,
      model,
      max_output_tokens: cap,
      store: false,
    };
  },
  finish: (answer, { model }) => ({ ...answer, model }),
  usage: (answer) => chatUsage(answer["usage"]),
  stream: nativeStream,
};
