import { messagesMedia, uploadOf } from "#formats";
import { byteLength, type JsonObject, list, object } from "#json";
import type { FormatConverter, StreamWriter } from "../converter.ts";
import { mapParts } from "../map-parts.ts";
import { isEncodedReasoning } from "../reasoning-state.ts";
import { convertUsageToChat, usageReader } from "./convert-response-to-chat.ts";
import { fitThinking } from "./reasoning.ts";

export const resolveUploads: FormatConverter["resolveUploads"] = (request, resolve) => {
  const resolveBlock = (block: JsonObject, path: string): JsonObject => {
    const ref = uploadOf(messagesMedia(block, path));
    if (ref) {
      const { mime, address, base64 } = resolve(ref);
      const source = /^data:/i.test(address)
        ? { type: "base64", media_type: mime, data: base64 }
        : { type: "url", url: address };
      return { ...block, source };
    }
    // Tool results and documents may contain blocks.
    const inner = Array.isArray(block["content"]) ? ["content"] : ["source", "content"];
    return mapParts(block, inner, resolveBlock, path);
  };
  return mapParts(request, ["messages", "content"], resolveBlock);
};

/** The provider rejects signatures of other models with a 400. */
function withoutForeignState(request: JsonObject): JsonObject {
  const isForeign = ({ signature, data }: JsonObject) => isEncodedReasoning(signature) || isEncodedReasoning(data);
  const messages = list(request["messages"]);
  if (!messages.some(({ content }) => list(content).some(isForeign))) return request;
  const own = messages.map((message) => {
    const { content } = message;
    return Array.isArray(content)
      ? { ...message, content: list(content).filter((block) => !isForeign(block)) }
      : message;
  });
  return { ...request, messages: own.filter(({ content }) => !Array.isArray(content) || content.length > 0) };
}

const eventName = /^\w{1,64}$/;

function eventBytes(event: JsonObject): number {
  const { text, thinking, partial_json } = object(event["delta"]);
  const { type, name } = object(event["content_block"]);
  return (
    byteLength(text) + byteLength(thinking) + byteLength(partial_json) + (type === "tool_use" ? byteLength(name) : 0)
  );
}

/**
 * The provider's events under the caller's name for the model. Pings are dropped, because the API writes its own.
 * `message_stop` is held back until the call ends, because a ping may come while the cost is captured.
 */
function stream({ model }: { readonly model: string }): StreamWriter {
  const counted = usageReader();
  let bytes = 0;
  let stop = "";

  return {
    write(event) {
      const { type } = event;
      if (typeof type !== "string" || !eventName.test(type) || type === "ping" || type === "error") return "";
      bytes += eventBytes(event);
      counted.read(event);
      const sent = type === "message_start" ? { ...event, message: { ...object(event["message"]), model } } : event;
      const text = `event: ${type}\ndata: ${JSON.stringify(sent)}\n\n`;
      if (type !== "message_stop") return text;
      stop = text;
      return "";
    },
    usage: counted.usage,
    outputBytes: () => bytes,
    end: () => stop,
  };
}

export const native: FormatConverter["native"] = {
  withoutForeignState,
  prepare(request, { model, cap }) {
    const known = withoutForeignState(request);
    return cap === undefined ? { ...known, model } : { ...fitThinking(known, cap), model, max_tokens: cap };
  },
  finish: (answer, { model }) => ({ ...answer, model }),
  usage: (answer) => convertUsageToChat(answer["usage"]),
  stream,
};
