import { type JsonObject, list, object, text } from "#formats";
import { contentText, firstChoice, reasoningText } from "../chat/fields.ts";
import type { ResponseIdentity } from "../converter.ts";
import {
  callItem,
  callType,
  itemId,
  logprobsOf,
  messageItem,
  noArguments,
  readCall,
  reasoningItem,
  refusalPart,
  standInCallId,
  summaryPart,
  textPart,
} from "./items.ts";
import { endOf, responseObject } from "./response.ts";
import { responsesUsage } from "./usage.ts";

function outputOf({ message: given, logprobs }: JsonObject, ours: ResponseIdentity): JsonObject[] {
  const message = object(given);
  const output: JsonObject[] = [];
  const thought = reasoningText(message);
  if (thought) output.push(reasoningItem(itemId("reasoning", ours, output.length), [summaryPart(thought)]));
  const said = contentText(message["content"]);
  const refusal = text(message["refusal"]);
  if (said || refusal)
    output.push(
      messageItem(itemId("message", ours, output.length), "completed", [
        ...(said ? [textPart(said, logprobsOf(object(logprobs)["content"]))] : []),
        ...(refusal ? [refusalPart(refusal)] : []),
      ]),
    );
  list(message["tool_calls"]).forEach((call, c) => {
    const { isCustom, name, input } = readCall(call);
    const callId = text(call["id"]) || standInCallId(ours, c);
    const id = itemId(callType(isCustom), ours, output.length);
    output.push(callItem(id, "completed", { callId, isCustom, name, input: input || (isCustom ? "" : noArguments) }));
  });
  return output;
}

/** Only the last item can have been cut short. Reasoning has no status. */
function cutShort(output: readonly JsonObject[]): readonly JsonObject[] {
  const last = output.at(-1);
  return last?.["status"] === undefined ? output : output.with(-1, { ...last, status: "incomplete" });
}

/** A completed chat answer as a response object. */
export function fromChat(answer: JsonObject, ours: ResponseIdentity, request: JsonObject): JsonObject {
  const choice = firstChoice(answer["choices"]) ?? {};
  const end = endOf(choice["finish_reason"]);
  const output = outputOf(choice, ours);
  return responseObject(request, ours, {
    ...end,
    error: null,
    output: end.status === "incomplete" ? cutShort(output) : output,
    usage: responsesUsage(answer["usage"], { input: 0, output: 0 }),
  });
}
