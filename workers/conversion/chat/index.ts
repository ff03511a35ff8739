/**
 * Chat-completions is the hub: converting it to and from itself only fills in what compatible servers omit. Source: OpenAI's
 * public API reference. Throws `invalidValue` for what chat upstreams do not support.
 */
import { noQuirks, type Quirks } from "#catalog";
import { audioFormat, chatMedia, refuse, uploadOf } from "#formats";
import { isSet, type JsonObject, list, object, text } from "#json";
import { type FormatConverter, type IgnoredParams, ignoredParams, type UpstreamTarget } from "../converter.ts";
import { mapParts } from "../map-parts.ts";
import { adaptMessages, lacksReasoning } from "./adapt-messages.ts";
import { chatStream, completeChat } from "./complete-chat.ts";
import { documentedFields } from "./fields.ts";
import { RepeatedChunk } from "./repeated-chunk.ts";

/** Adapts a chat request to the server: strict servers refuse fields, roles and message orders that they do not know. */
function applyQuirks(
  request: JsonObject,
  quirks: Quirks = noQuirks,
  ignored: IgnoredParams = ignoredParams(),
): JsonObject {
  const { messages, tools, ...fields } = withKnownFields(request, quirks, ignored);
  const adapted = {
    ...quirks.added_fields,
    ...fields,
    messages: Array.isArray(messages) ? adaptMessages(messages, quirks, ignored) : messages,
    ...(isSet(tools) && { tools: withParameters(tools) }),
  };
  return mayNotThink(request, quirks) ? withoutThinking(adapted, ignored) : adapted;
}

function withKnownFields(request: JsonObject, quirks: Quirks, ignored: IgnoredParams): JsonObject {
  const { extra_fields, refused_fields } = quirks;
  const isTaken = (field: string) =>
    (documentedFields.has(field) || extra_fields.includes(field)) && !refused_fields.includes(field);
  const fields = Object.entries(request);
  if (fields.every(([field]) => isTaken(field))) return request;
  for (const [field, value] of fields) if (!isTaken(field)) ignored.add(field, value);
  return Object.fromEntries(fields.filter(([field]) => isTaken(field)));
}

/** OpenAI allows functions without parameters, which other servers refuse. */
function withParameters(tools: unknown): unknown {
  const needs = ({ type, function: declared }: JsonObject) =>
    type === "function" && !isSet(object(declared)["parameters"]);
  if (!Array.isArray(tools) || !list(tools).some(needs)) return tools;
  const parameters = { type: "object", properties: {} };
  return tools.map((value: unknown): unknown => {
    const tool = object(value);
    return needs(tool) ? { ...tool, function: { ...object(tool["function"]), parameters } } : value;
  });
}

function mayNotThink({ tool_choice, messages, reasoning_effort }: JsonObject, { thinking_switch }: Quirks): boolean {
  if (!thinking_switch) return false;
  const isForced = tool_choice === "required" || object(tool_choice)["type"] === "function";
  return isForced || reasoning_effort === "none" || lacksReasoning(messages);
}

function withoutThinking({ reasoning_effort, ...request }: JsonObject, ignored: IgnoredParams): JsonObject {
  if (object(request["thinking"])["type"] !== "disabled") ignored.add("thinking", request["thinking"]);
  ignored.add("reasoning_effort", reasoning_effort === "none" ? undefined : reasoning_effort);
  return { ...request, thinking: { type: "disabled" } };
}

function refuseLinks({ messages }: JsonObject): void {
  list(messages).forEach(({ content }, m) => {
    list(content).forEach(({ type, file }, c) => {
      if (type !== "file" || !/^https?:/i.test(text(object(file)["file_data"]))) return;
      refuse(`messages[${m}].content[${c}].file.file_data`, "this model supports files as bytes, not by a link");
    });
  });
}

/**
 * Converts a request from another format. An effort of `none` is dropped: models that do not reason refuse it, and chat
 * models that do reason only on request.
 */
const convertRequestFromChat: FormatConverter["requestFromChat"] = (request, { quirks } = {}) => {
  refuseLinks(request);
  const ignored = ignoredParams();
  const { reasoning_effort, ...rest } = applyQuirks(request, quirks, ignored);
  if (reasoning_effort === "none") ignored.add("reasoning_effort", reasoning_effort);
  const isSent = reasoning_effort !== undefined && reasoning_effort !== "none";
  return { request: isSent ? { ...rest, reasoning_effort } : rest, ignored: ignored.names() };
};

/** Sets the model and the output cap of the upstream. */
export function toUpstream(request: JsonObject, { model, cap, capField }: UpstreamTarget): JsonObject {
  const { max_tokens: _, max_completion_tokens: __, ...rest } = request;
  return cap === undefined ? { ...rest, model } : { ...rest, model, [capField]: cap };
}

const resolveUploads: FormatConverter["resolveUploads"] = (request, resolve) =>
  mapParts(request, ["messages", "content"], (part, path) => {
    const ref = uploadOf(chatMedia(part, path));
    if (!ref) return part;
    const { mime, address, base64 } = resolve(ref);
    switch (part["type"]) {
      case "image_url":
        return { ...part, image_url: { ...object(part["image_url"]), url: address } };
      case "input_audio":
        return { ...part, input_audio: { ...object(part["input_audio"]), data: base64, format: audioFormat(mime) } };
      default: {
        const { file_id: _, file_data: __, ...file } = object(part["file"]);
        return { ...part, file: { filename: ref.id, ...file, file_data: address } };
      }
    }
  });

/**
 * Finish reasons of compatible servers that OpenAI does not have: Together, Mistral, Z.ai. docs/upstreams.md has the
 * sources.
 */
const finishReasons: ReadonlyMap<unknown, string> = new Map([
  ["eos", "stop"],
  ["model_length", "length"],
  ["model_context_window_exceeded", "length"],
  ["sensitive", "content_filter"],
]);

/** Finish reasons that mean a server failure: Z.ai, Mistral. */
const failures: readonly unknown[] = ["network_error", "error"];

/** Mistral's reasoning models answer with a list of text and thinking parts; a thinking part holds a list of texts. */
function withTextContent(message: JsonObject): JsonObject {
  const { content } = message;
  if (!Array.isArray(content)) return message;
  const parts = list(content);
  const textOf = (each: readonly JsonObject[]) => each.map((part) => text(part["text"])).join("");
  const thinking = parts.filter(({ type }) => type === "thinking").map(({ thinking: inner }) => textOf(list(inner)));
  return { ...message, content: textOf(parts), ...(thinking.length > 0 && { reasoning_content: thinking.join("") }) };
}

/** The error that a failed choice of an answer or a chunk reports. Returns undefined if no choice failed. */
export const failureOfChoices = ({ choices }: JsonObject): JsonObject | undefined => {
  const failed = list(choices).find(({ finish_reason }) => failures.includes(finish_reason));
  return failed && { error: { message: `finish_reason ${text(failed["finish_reason"])}`, code: 500 } };
};

/** Normalizes the content and finish reasons of a compatible server's answer or chunk to OpenAI's. */
export function normalizeAnswer<T extends JsonObject>(answer: T, holder: "message" | "delta"): T {
  const choices = list(answer["choices"]);
  const isOdd = (choice: JsonObject) =>
    finishReasons.has(choice["finish_reason"]) || Array.isArray(object(choice[holder])["content"]);
  if (!choices.some(isOdd)) return answer;
  return {
    ...answer,
    choices: choices.map((choice) => {
      const finish_reason = finishReasons.get(choice["finish_reason"]);
      return {
        ...choice,
        [holder]: withTextContent(object(choice[holder])),
        ...(finish_reason !== undefined && { finish_reason, native_finish_reason: choice["finish_reason"] }),
      };
    }),
  };
}

export { chunkParser } from "./repeated-chunk.ts";

export const chatConverter: FormatConverter = {
  resolveUploads,
  requestToChat: (request) => ({ request, ignored: [] }),
  callerFields: {},
  responseFromChat: (answer) => answer,
  streamFromChat: chatStream,
  requestFromChat: convertRequestFromChat,
  responseToChat: (answer) => answer,
  // The writer of the caller's format reads the usage from the chunks.
  streamToChat: () => ({
    write: (chunk) => [chunk instanceof RepeatedChunk ? chunk.toChunk() : chunk],
    usage: () => undefined,
  }),
  native: {
    prepare: (request, target, ignored) => applyQuirks(toUpstream(request, target), target.quirks, ignored),
    finish: completeChat,
    usage: ({ usage }) => usage,
    stream: chatStream,
  },
};
