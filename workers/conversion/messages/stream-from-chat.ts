import { type JsonObject, list, object, text } from "#formats";
import { contentText, firstChoice, reasoningText } from "../chat/fields.ts";
import type { ResponseIdentity, StreamWriter } from "../converter.ts";
import { blankMessage } from "./answer.ts";
import { blockWriter, event } from "./block-writer.ts";
import { callWriter } from "./call-writer.ts";
import { stopOf } from "./map-stop-reason.ts";
import { proseWriter } from "./prose-writer.ts";
import { ownDetails } from "./reasoning.ts";
import { messagesUsage, noUsage } from "./usage.ts";

/** Writes a Messages stream from chat chunks. */
export function streamFromChat(ours: ResponseIdentity, request: JsonObject): StreamWriter {
  const blocks = blockWriter();
  const prose = proseWriter(blocks);
  const calls = callWriter(blocks, ours);
  let isBegun = false;
  let usage: unknown;
  let end: JsonObject = {};
  let refusal = false;

  const begin = (): string => {
    if (isBegun) return "";
    isBegun = true;
    return event("message_start", { message: { ...blankMessage(ours), usage: noUsage } });
  };

  const write = (delta: JsonObject): string => {
    const reasoning = reasoningText(delta);
    const refused = text(delta["refusal"]);
    refusal ||= refused !== "";
    let out = prose.think(reasoning);
    for (const detail of ownDetails(delta["reasoning_details"])) out += prose.detail(detail, reasoning !== "");
    out += prose.say(contentText(delta["content"])) + prose.say(refused);
    for (const call of list(delta["tool_calls"])) out += calls.write(call);
    return out;
  };

  return {
    write(chunk) {
      if (chunk["usage"] != null) usage = chunk["usage"];
      const choice = firstChoice(chunk["choices"]);
      if (!choice) return "";
      if (choice["finish_reason"]) end = choice;
      return begin() + write(object(choice["delta"]));
    },
    usage: () => usage,
    outputBytes: () => prose.bytes() + calls.bytes(),
    end(estimate) {
      const stop = stopOf(end, { calls: calls.count() > 0, refusal }, request);
      return (
        begin() +
        blocks.end() +
        event("message_delta", {
          delta: { ...stop, container: null },
          usage: messagesUsage(usage, estimate),
        }) +
        event("message_stop", {})
      );
    },
  };
}
