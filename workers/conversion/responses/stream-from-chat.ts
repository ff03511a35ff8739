import { errorEvent, type JsonObject, list, object, text } from "#formats";
import { contentText, firstChoice, reasoningText } from "../chat/fields.ts";
import type { ResponseIdentity, StreamWriter } from "../converter.ts";
import { numbered, responseError } from "./events.ts";
import { logprobsOf } from "./items.ts";
import { endOf, responseObject, type State } from "./response.ts";
import { streamedOutput } from "./stream-output.ts";
import { responsesUsage } from "./usage.ts";

/** A stream whose failure can be told in full by `response.failed`, then `error`: only its writer knows how far it is. */
export type FailingStreamWriter = Required<StreamWriter>;

/** What was not done when the stream failed. */
const broken = (item: JsonObject): JsonObject =>
  item["status"] === "in_progress" ? { ...item, status: "incomplete" } : item;

const untouched: State = { status: "in_progress", incomplete_details: null, error: null, output: [], usage: null };

/** Writes the format's events from chat chunks. */
export function streamFromChat(ours: ResponseIdentity, request: JsonObject): FailingStreamWriter {
  const { emit, next } = numbered();
  const output = streamedOutput(emit, ours);
  let usage: unknown;
  let finish: unknown;
  let hasBegun = false;

  const lifecycle = (type: string, state: Partial<State>): string =>
    emit(type, { response: responseObject(request, ours, { ...untouched, ...state }) });
  const begin = (): string => {
    if (hasBegun) return "";
    hasBegun = true;
    return lifecycle("response.created", {}) + lifecycle("response.in_progress", {});
  };

  return {
    write(chunk) {
      if (chunk["usage"] != null) usage = chunk["usage"];
      const choice = firstChoice(chunk["choices"]);
      if (!choice) return "";
      if (choice["finish_reason"]) finish = choice["finish_reason"];
      const delta = object(choice["delta"]);
      let events = begin();
      const thought = reasoningText(delta);
      if (thought) events += output.think(thought);
      const said = contentText(delta["content"]);
      if (said) events += output.say(said, logprobsOf(object(choice["logprobs"])["content"]));
      const refusal = text(delta["refusal"]);
      if (refusal) events += output.refuse(refusal);
      for (const call of list(delta["tool_calls"])) events += output.callTool(call);
      return events;
    },
    usage: () => usage,
    outputBytes: output.bytes,
    end(estimate) {
      const end = endOf(finish);
      const closed = begin() + output.close(end.status);
      const whole = { ...end, output: output.items(), usage: responsesUsage(usage, estimate) };
      return closed + lifecycle(`response.${end.status}`, whole);
    },
    fail(error) {
      const begun = begin();
      const failed = { status: "failed" as const, error: responseError(error), output: output.items().map(broken) };
      return begun + lifecycle("response.failed", failed) + errorEvent(error, next());
    },
  };
}
