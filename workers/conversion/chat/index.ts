import { invalidValue } from "#errors";
import { type JsonObject, list, object, text } from "#formats";
import type { ConvertedRequest, FormatConverter, UpstreamTarget } from "../converter.ts";
import { ignoredParams } from "../ignored-params.ts";
import { chatStream, completeChat } from "./answer.ts";
import { isDocumented } from "./fields.ts";
import { placeChatUploads } from "./uploads.ts";

const isOthers = (message: JsonObject): boolean =>
  "reasoning_details" in message ||
  "extra_content" in message ||
  (Array.isArray(message["tool_calls"]) && message["tool_calls"].some((call) => "extra_content" in object(call)));

const withoutExtra = (holder: unknown): JsonObject => {
  const { extra_content: _, ...rest } = object(holder);
  return rest;
};

/** Reasoning state of providers that do not speak chat: who does refuses the fields, or would make nothing of them. */
function withoutOthers(request: JsonObject): JsonObject {
  const { messages } = request;
  if (!Array.isArray(messages) || !messages.some((message) => isOthers(object(message)))) return request;
  return {
    ...request,
    messages: messages.map((each: unknown) => {
      const { reasoning_details: _, ...message } = withoutExtra(each);
      const { tool_calls } = message;
      return Array.isArray(tool_calls) ? { ...message, tool_calls: tool_calls.map(withoutExtra) } : message;
    }),
  };
}

/** Chat takes files as bytes alone. */
function refuseLinks({ messages }: JsonObject): void {
  list(messages).forEach(({ content }, m) => {
    list(content).forEach(({ type, file }, c) => {
      if (type !== "file" || !/^https?:/i.test(text(object(file)["file_data"]))) return;
      const at = `messages[${m}].content[${c}].file.file_data`;
      throw invalidValue(at, `${at}: this model takes files as bytes, not by a link.`);
    });
  });
}

/**
 * From another format. Not to think at all is left out: models that do not think refuse to be told so, and those behind
 * this format that do think only if they are asked to.
 */
function fromChatRequest(request: JsonObject): ConvertedRequest {
  refuseLinks(request);
  const { reasoning_effort, ...rest } = withoutOthers(request);
  if (reasoning_effort === "none") return { request: rest, ignored: ["reasoning_effort"] };
  return { request: reasoning_effort === undefined ? rest : { ...rest, reasoning_effort }, ignored: [] };
}

/** The request with the model and the cap of the upstream that it goes to, and nothing else changed. */
export function toUpstream(request: JsonObject, { model, cap, capField }: UpstreamTarget): JsonObject {
  const { max_tokens: _, max_completion_tokens: __, ...rest } = request;
  return { ...rest, model, [capField]: cap };
}

/**
 * For an upstream that refuses fields that it does not know, or may sell something by them: without those that are not
 * documented, which are named.
 */
export function withoutUnknown(request: JsonObject): ConvertedRequest {
  const ignored = ignoredParams();
  const known = Object.entries(request).filter(([field, value]) => {
    if (isDocumented(field)) return true;
    ignored.add(field, value);
    return false;
  });
  return { request: Object.fromEntries(known), ignored: ignored.names() };
}

/** Chat-completions itself: the hub, so both ways are the same way. */
export const chatConverter: FormatConverter = {
  resolveUploads: placeChatUploads,
  requestToChat: (request) => ({ request, ignored: [] }),
  callerFields: {},
  responseFromChat: (answer) => answer,
  streamFromChat: chatStream,
  requestFromChat: fromChatRequest,
  responseToChat: (answer) => answer,
  // The usage is in the chunks: whoever writes them on sees it.
  streamToChat: () => ({ write: (chunk) => [chunk], usage: () => undefined }),
  native: {
    prepare: (request, to) => withoutOthers(toUpstream(request, to)),
    finish: completeChat,
    usage: ({ usage }) => usage,
    stream: chatStream,
  },
};
