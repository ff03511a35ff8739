import { invalidValue } from "#errors";
import { chatStream, completeChat } from "./chat-answer.ts";
import { isDocumented } from "./chat-fields.ts";
import type { Crossed, Dialect, To } from "./dialect.ts";
import { leftOut } from "./left-out.ts";
import { type Loose, object } from "./loose.ts";
import { list, text } from "./read.ts";
import { placeChatUploads } from "./uploads.ts";

const isOthers = (message: Loose): boolean =>
  "reasoning_details" in message ||
  "extra_content" in message ||
  (Array.isArray(message["tool_calls"]) && message["tool_calls"].some((call) => "extra_content" in object(call)));

const withoutExtra = (holder: unknown): Loose => {
  const { extra_content: _, ...rest } = object(holder);
  return rest;
};

/** Reasoning state of makers that do not speak chat: who does refuses the fields, or would make nothing of them. */
function withoutOthers(request: Loose): Loose {
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
function refuseLinks({ messages }: Loose): void {
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
function fromChatRequest(request: Loose): Crossed {
  refuseLinks(request);
  const { reasoning_effort, ...rest } = withoutOthers(request);
  if (reasoning_effort === "none") return { request: rest, ignored: ["reasoning_effort"] };
  return { request: reasoning_effort === undefined ? rest : { ...rest, reasoning_effort }, ignored: [] };
}

/** The request with the model and the cap of the upstream that it goes to, and nothing else changed. */
export function toUpstream(request: Loose, { model, cap, capField }: To): Loose {
  const { max_tokens: _, max_completion_tokens: __, ...rest } = request;
  return { ...rest, model, [capField]: cap };
}

/**
 * For an upstream that refuses fields that it does not know, or may sell something by them: without those that are not
 * documented, which are named.
 */
export function withoutUnknown(request: Loose): Crossed {
  const ignored = leftOut();
  const known = Object.entries(request).filter(([field, value]) => {
    if (isDocumented(field)) return true;
    ignored.add(field, value);
    return false;
  });
  return { request: Object.fromEntries(known), ignored: ignored.names() };
}

/** Chat-completions itself: the hub, so both ways are the same way. */
export const chatDialect: Dialect = {
  placeUploads: placeChatUploads,
  toChat: (request) => ({ request, ignored: [] }),
  ownField: (field) => field,
  fromChat: (answer) => answer,
  streamFromChat: chatStream,
  fromChatRequest,
  toChatAnswer: (answer) => answer,
  // The usage is in the chunks: whoever writes them on sees it.
  streamToChat: () => ({ write: (chunk) => [chunk], usage: () => undefined }),
  native: {
    prepare: (request, to) => withoutOthers(toUpstream(request, to)),
    finish: completeChat,
    usage: ({ usage }) => usage,
    stream: chatStream,
  },
};
