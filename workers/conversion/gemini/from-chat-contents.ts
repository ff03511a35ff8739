import { invalidValue } from "#errors";
import {
  audioMime,
  checkLink,
  given,
  inlineOf,
  type JsonObject,
  kindOf,
  list,
  mimeOfLink,
  object,
  text,
} from "#formats";
import { contentText, reasoningText } from "../chat/fields.ts";
import type { IgnoredParams } from "../ignored-params.ts";
import { argumentsObject, argumentsOf } from "../tool-calls.ts";
import type { Generation } from "./model-capabilities.ts";
import { foreignSignature, signatureOf } from "./signature.ts";

/** `results`: what tools gave stands alone, for what the user says begins a new turn. */
interface Content {
  readonly of: "user" | "results" | "model";
  readonly parts: JsonObject[];
}

const textParts = (value: unknown): JsonObject[] => (text(value) ? [{ text: value }] : []);

/** Links do not say what they lead to, and the provider asks for it: by their ending, else `otherwise`. */
function mediaOf(address: string, otherwise: string, at: string): JsonObject {
  const inline = inlineOf(address);
  if (inline) return { inlineData: { ...inline, mimeType: inline.mimeType || otherwise } };
  checkLink(address, at);
  return { fileData: { mimeType: mimeOfLink(address) ?? otherwise, fileUri: address } };
}

function imageOf(part: JsonObject, at: string): JsonObject {
  const holder = part["image_url"];
  const path = `${at}.image_url.url`;
  const media = mediaOf(text(holder) || text(object(holder)["url"]), "image/jpeg", path);
  const { mimeType } = object(media["inlineData"] ?? media["fileData"]);
  // It was bounded as a picture, so it goes as nothing else.
  if (kindOf(text(mimeType)) !== "image") throw invalidValue(path, `${path} must lead to an image.`);
  return media;
}

function audioOf(part: JsonObject, at: string): JsonObject {
  const { data, format } = object(part["input_audio"]);
  if (!text(data)) throw invalidValue(`${at}.input_audio.data`, `${at}.input_audio.data must be a string.`);
  return { inlineData: { mimeType: audioMime(text(format)), data } };
}

function fileOf(part: JsonObject, at: string): JsonObject {
  const { file_data } = object(part["file"]);
  return mediaOf(text(file_data), "application/pdf", `${at}.file.file_data`);
}

function partsOf(content: unknown, at: string, left: IgnoredParams): JsonObject[] {
  if (!Array.isArray(content)) return textParts(content);
  return list(content).flatMap((part, c) => {
    const path = `${at}[${c}]`;
    left.add("cache_control", part["cache_control"]);
    switch (part["type"]) {
      case "text":
        return textParts(part["text"]);
      case "refusal":
        return textParts(part["refusal"]);
      case "thinking":
        return [];
      case "image_url":
        return [imageOf(part, path)];
      case "input_audio":
        return [audioOf(part, path)];
      case "file":
        return [fileOf(part, path)];
      default:
        throw invalidValue(`${path}.type`, `${path}.type: this model does not take parts of this type.`);
    }
  });
}

function callOf(call: JsonObject, at: string, names: Map<string, string>): JsonObject {
  const { name, arguments: args } = object(call["function"]);
  if (!text(name)) throw invalidValue(`${at}.function.name`, `${at}.function.name must be a string.`);
  const id = text(call["id"]);
  names.set(id, text(name));
  return given({
    functionCall: given({ id: id || undefined, name, args: argumentsObject(args) }),
    thoughtSignature: signatureOf(call) || undefined,
  });
}

/** The first call of a step must have a signature; of another model's there is none. */
function signedCalls(calls: JsonObject[], { signs }: Generation): JsonObject[] {
  const [first, ...rest] = calls;
  if (!first || !signs || calls.some(({ thoughtSignature }) => thoughtSignature)) return calls;
  return [{ ...first, thoughtSignature: foreignSignature }, ...rest];
}

function modelParts(message: JsonObject, at: string, names: Map<string, string>, context: Context): JsonObject[] {
  const { generation, left } = context;
  left.add("reasoning_content", reasoningText(message));
  const words = [...partsOf(message["content"], `${at}.content`, left), ...textParts(message["refusal"])];
  const calls = list(message["tool_calls"]).map((call, c) => callOf(call, `${at}.tool_calls[${c}]`, names));
  const thoughtSignature = signatureOf(message);
  const last = words.pop();
  // It stood with the last of what was said, or with nothing.
  const signedLast = thoughtSignature ? [{ text: "", ...last, thoughtSignature }] : last ? [last] : [];
  return [...words, ...signedLast, ...signedCalls(calls, generation)];
}

/** An object as it is, all else as the provider's documentation names it. */
function responseOf(said: string): JsonObject {
  const response = said.trimStart().startsWith("{") ? argumentsOf(said) : undefined;
  return response ?? { output: said };
}

/** Newer models take media inside of a result, by their bytes; all others beside it. */
function resultParts(
  message: JsonObject,
  at: string,
  names: Map<string, string>,
  { generation, left }: Context,
): JsonObject[] {
  const id = text(message["tool_call_id"]);
  const name = names.get(id) ?? text(message["name"]);
  if (!name)
    throw invalidValue(`${at}.tool_call_id`, `${at}.tool_call_id must be the id of a call in an earlier message.`);
  const media = partsOf(message["content"], `${at}.content`, left).filter((part) => part["text"] === undefined);
  const isInside = (part: JsonObject) =>
    generation.signs && kindOf(text(object(part["inlineData"])["mimeType"])) !== "audio";
  const inside = media.filter((part) => part["inlineData"] !== undefined && isInside(part));
  return [
    {
      functionResponse: given({
        id: id || undefined,
        name,
        response: responseOf(contentText(message["content"])),
        parts: inside.length > 0 ? inside : undefined,
      }),
    },
    ...media.filter((part) => !inside.includes(part)),
  ];
}

interface Context {
  readonly generation: Generation;
  readonly left: IgnoredParams;
}

/** Chat's messages as contents, and the system's, wherever they stand, as the instruction before them all. */
export function contentsOf(messages: unknown, context: Context): { system: JsonObject[]; contents: JsonObject[] } {
  const contents: Content[] = [];
  const system: JsonObject[] = [];
  const names = new Map<string, string>();

  const add = (of: Content["of"], parts: JsonObject[]) => {
    if (parts.length === 0) return;
    const last = contents.at(-1);
    if (last?.of === of) last.parts.push(...parts);
    else contents.push({ of, parts });
  };

  list(messages).forEach((message, m) => {
    const at = `messages[${m}]`;
    switch (message["role"]) {
      case "system":
      case "developer":
        system.push(...textParts(contentText(message["content"])));
        return;
      case "user":
        add("user", partsOf(message["content"], `${at}.content`, context.left));
        return;
      case "tool":
        add("results", resultParts(message, at, names, context));
        return;
      case "assistant":
        add("model", modelParts(message, at, names, context));
        return;
      default:
        throw invalidValue(`${at}.role`, `${at}.role: this model does not take it.`);
    }
  });
  if (contents.length === 0) throw invalidValue("messages", "messages: one must have content that is not a system's.");
  return {
    system,
    contents: contents.map(({ of, parts }) => ({ role: of === "model" ? "model" : "user", parts })),
  };
}
