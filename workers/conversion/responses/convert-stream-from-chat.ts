import { errorEvent, type JsonObject, list, object, text } from "#formats";
import { contentText, firstChoice, reasoningText } from "../chat/fields.ts";
import { type ResponseIdentity, type StreamWriter } from "../converter.ts";
import { type ResponseState, responseError, responseObject } from "./convert-response-from-chat.ts";
import { convertUsageFromChat } from "./convert-usage.ts";
import { mapFinishReasonFromChat } from "./map-finish-reason.ts";
import { logprobsFromChat } from "./output-items.ts";
import { numberedEvents, streamOutput } from "./stream-output.ts";

const initialState: ResponseState = {
  status: "in_progress",
  incomplete_details: null,
  error: null,
  output: [],
  usage: null,
};

/** A failed stream ends with `response.failed` and `error`: only its writer knows their sequence numbers. */
export function convertStreamFromChat(identity: ResponseIdentity, request: JsonObject): Required<StreamWriter> {
  const { emit, nextNumber } = numberedEvents();
  const output = streamOutput(emit, identity);
  let usage: unknown;
  let finishReason: unknown;
  let hasBegun = false;

  const emitState = (type: string, state: Partial<ResponseState>): string =>
    emit(type, { response: responseObject(request, identity, { ...initialState, ...state }) });
  const begin = (): string => {
    if (hasBegun) return "";
    hasBegun = true;
    return emitState("response.created", {}) + emitState("response.in_progress", {});
  };

  return {
    write(chunk) {
      if (chunk["usage"] != null) usage = chunk["usage"];
      const choice = firstChoice(chunk["choices"]);
      if (!choice) return "";
      if (choice["finish_reason"]) finishReason = choice["finish_reason"];
      const delta = object(choice["delta"]);
      let events = begin();
      const reasoning = reasoningText(delta);
      if (reasoning) events += output.writePart("reasoning", reasoning);
      const content = contentText(delta["content"]);
      if (content) events += output.writePart("text", content, logprobsFromChat(object(choice["logprobs"])["content"]));
      const refusal = text(delta["refusal"]);
      if (refusal) events += output.writePart("refusal", refusal);
      for (const call of list(delta["tool_calls"])) events += output.writeCall(call);
      return events;
    },
    usage: () => usage,
    outputBytes: output.bytes,
    end(estimate) {
      const end = mapFinishReasonFromChat(finishReason);
      const closed = begin() + output.close(end.status);
      const state = { ...end, output: output.items(), usage: convertUsageFromChat(usage, estimate) };
      return closed + emitState(`response.${end.status}`, state);
    },
    fail(error) {
      const begun = begin();
      const items = output
        .items()
        .map((item) => (item["status"] === "in_progress" ? { ...item, status: "incomplete" } : item));
      const failed = emitState("response.failed", { status: "failed", error: responseError(error), output: items });
      return begun + failed + errorEvent(error, nextNumber());
    },
  };
}
