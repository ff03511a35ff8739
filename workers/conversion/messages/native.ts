import { byteLength, given, type JsonObject, messagesUpload, object, type UploadRef } from "#formats";
import type { FormatConverter, ResolvedUpload, StreamWriter } from "../converter.ts";
import { convertUsageToChat } from "./convert-response-to-chat.ts";
import { fitThinking } from "./reasoning.ts";

function resolveBlock(block: JsonObject, at: string, resolve: (ref: UploadRef) => ResolvedUpload): JsonObject {
  const ref = messagesUpload(block, at);
  if (ref) {
    const { mime, address, base64 } = resolve(ref);
    const source = /^data:/i.test(address)
      ? { type: "base64", media_type: mime, data: base64 }
      : { type: "url", url: address };
    return { ...block, source };
  }
  // Tool results and documents may have blocks of their own.
  if (Array.isArray(block["content"]))
    return { ...block, content: resolveBlocks(block["content"], `${at}.content`, resolve) };
  const source = object(block["source"]);
  if (!Array.isArray(source["content"])) return block;
  return {
    ...block,
    source: { ...source, content: resolveBlocks(source["content"], `${at}.source.content`, resolve) },
  };
}

const resolveBlocks = (
  blocks: readonly unknown[],
  at: string,
  resolve: (ref: UploadRef) => ResolvedUpload,
): JsonObject[] => blocks.map((block, b) => resolveBlock(object(block), `${at}[${b}]`, resolve));

/** The request with each upload's id replaced by its content. */
export function resolveUploads(request: JsonObject, resolve: (ref: UploadRef) => ResolvedUpload): JsonObject {
  const { messages } = request;
  if (!Array.isArray(messages)) return request;
  return {
    ...request,
    messages: messages.map((value: unknown, m) => {
      const { content } = object(value);
      if (!Array.isArray(content)) return value;
      return { ...object(value), content: resolveBlocks(content, `messages[${m}].content`, resolve) };
    }),
  };
}

const eventName = /^\w{1,64}$/;

/** UTF-8 bytes of output in an event. */
function eventBytes(event: JsonObject): number {
  const { text, thinking, partial_json } = object(event["delta"]);
  const { type, name } = object(event["content_block"]);
  return (
    byteLength(text) + byteLength(thinking) + byteLength(partial_json) + (type === "tool_use" ? byteLength(name) : 0)
  );
}

/** The provider's events with our model id. Its pings are dropped, because the API writes its own. */
function stream({ model }: { readonly model: string }): StreamWriter {
  let counts: JsonObject = {};
  let usage: JsonObject | undefined;
  let bytes = 0;

  const withModel = (event: JsonObject): JsonObject => {
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
        usage = convertUsageToChat(counts);
      }
      const sent = type === "message_start" ? withModel(event) : event;
      return `event: ${type}\ndata: ${JSON.stringify(sent)}\n\n`;
    },
    usage: (soFar) => usage ?? (soFar ? convertUsageToChat(counts) : undefined),
    outputBytes: () => bytes,
    // The provider's `message_stop` has ended the stream.
    end: () => "",
  };
}

export const passThrough: FormatConverter["native"] = {
  prepare: (request, { model, cap }) => ({ ...fitThinking(request, cap), model, max_tokens: cap }),
  finish: (answer, { model }) => ({ ...answer, model }),
  usage: (answer) => convertUsageToChat(answer["usage"]),
  stream,
};
