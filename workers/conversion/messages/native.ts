import { byteLength, given, type JsonObject, object } from "#formats";
import type { FormatConverter, StreamWriter } from "../converter.ts";
import { fitThinking } from "./effort.ts";
import { chatUsage } from "./usage.ts";

const eventName = /^\w{1,64}$/;

/** UTF-8 bytes of what an event says. */
function eventBytes(event: JsonObject): number {
  const { text, thinking, partial_json } = object(event["delta"]);
  const { type, name } = object(event["content_block"]);
  return (
    byteLength(text) + byteLength(thinking) + byteLength(partial_json) + (type === "tool_use" ? byteLength(name) : 0)
  );
}

/** The provider's own events, but for our model id. Its pings are left out: ours come when the stream is silent. */
function stream({ model }: { readonly model: string }): StreamWriter {
  let counts: JsonObject = {};
  let usage: JsonObject | undefined;
  let bytes = 0;

  const named = (event: JsonObject): JsonObject => {
    const message = object(event["message"]);
    counts = given(object(message["usage"]));
    return { ...event, message: { ...message, model } };
  };

  return {
    write(event) {
      const { type } = event;
      if (typeof type !== "string" || !eventName.test(type) || type === "ping" || type === "error") return "";
      bytes += eventBytes(event);
      if (type === "message_delta") {
        counts = { ...counts, ...given(object(event["usage"])) };
        usage = chatUsage(counts);
      }
      const ours = type === "message_start" ? named(event) : event;
      return `event: ${type}\ndata: ${JSON.stringify(ours)}\n\n`;
    },
    usage: (soFar) => usage ?? (soFar ? chatUsage(counts) : undefined),
    outputBytes: () => bytes,
    // The provider's `message_stop` was the end.
    end: () => "",
  };
}

export const native: FormatConverter["native"] = {
  prepare: (request, { model, cap }) => ({ ...fitThinking(request, cap), model, max_tokens: cap }),
  finish: (answer, { model }) => ({ ...answer, model }),
  usage: (answer) => chatUsage(answer["usage"]),
  stream,
};
