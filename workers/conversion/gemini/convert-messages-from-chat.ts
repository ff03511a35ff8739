import { invalidValue } from "#errors";
import { audioMime, checkLink, inlineOf, kindOf, mimeOfLink, needText, refuse } from "#formats";
import { type JsonObject, list, object, omitNullish, text } from "#json";
import { contentText, reasoningText } from "../chat/fields.ts";
import type { IgnoredParams } from "../converter.ts";
import { argumentsObject, argumentsOf } from "../tool-calls.ts";
import { type ModelCapabilities, signatureOf, skipSignatureValidation } from "./reasoning.ts";

/** Tool results (`results`) form their own content, because the user's text after them begins a new turn. */
interface Content {
  readonly source: "user" | "results" | "model";
  readonly parts: JsonObject[];
}

const textParts = (value: unknown): JsonObject[] => (text(value) ? [{ text: value }] : []);

/** The provider also requires the type of a link; it is guessed from the file extension. */
function mediaPart(address: string, defaultMime: string, path: string): JsonObject {
  const inline = inlineOf(address);
  if (inline) return { inlineData: { ...inline, mimeType: inline.mimeType || defaultMime } };
  checkLink(address, path);
  return { fileData: { mimeType: mimeOfLink(address) ?? defaultMime, fileUri: address } };
}

function imagePart(part: JsonObject, partPath: string): JsonObject {
  const image = part["image_url"];
  const path = `${partPath}.image_url.url`;
  const media = mediaPart(text(image) || text(object(image)["url"]), "image/jpeg", path);
  const { mimeType } = object(media["inlineData"] ?? media["fileData"]);
  // The maximum cost was computed for an image.
  if (kindOf(text(mimeType)) !== "image") throw invalidValue(path, `${path} must refer to an image.`);
  return media;
}

function audioPart(part: JsonObject, path: string): JsonObject {
  const { data, format } = object(part["input_audio"]);
  return { inlineData: { mimeType: audioMime(text(format)), data: needText(data, `${path}.input_audio.data`) } };
}

function partsFromChat(content: unknown, path: string): JsonObject[] {
  if (!Array.isArray(content)) return textParts(content);
  return list(content).flatMap((part, c) => {
    const partPath = `${path}[${c}]`;
    switch (part["type"]) {
      case "text":
        return textParts(part["text"]);
      case "image_url":
        return [imagePart(part, partPath)];
      case "input_audio":
        return [audioPart(part, partPath)];
      case "file":
        return [mediaPart(text(object(part["file"])["file_data"]), "application/pdf", `${partPath}.file.file_data`)];
      default:
        return refuse(`${partPath}.type`, "parts of this type are not supported by this model");
    }
  });
}

/** Limit for all tool results of a request together. Further results stay text, because parsing blocks the event loop. */
const maxParsedCharacters = 1024 * 1024;

/** `system` holds the parts of all system messages, wherever they occur. Throws `invalidValue` naming the chat field. */
export function convertMessagesFromChat(
  messages: unknown,
  capabilities: ModelCapabilities,
  ignored: IgnoredParams,
): { system: JsonObject[]; contents: JsonObject[] } {
  const contents: Content[] = [];
  const system: JsonObject[] = [];
  const functionNames = new Map<string, string>();
  let parsableCharacters = maxParsedCharacters;

  const add = (source: Content["source"], parts: JsonObject[]) => {
    if (parts.length === 0) return;
    const last = contents.at(-1);
    if (last?.source === source) last.parts.push(...parts);
    else contents.push({ source, parts });
  };

  const callPart = (call: JsonObject, path: string): JsonObject => {
    const { name: functionName, arguments: args } = object(call["function"]);
    const name = needText(functionName, `${path}.function.name`);
    const id = text(call["id"]);
    functionNames.set(id, name);
    return omitNullish({
      functionCall: omitNullish({ id: id || undefined, name, args: argumentsObject(args) }),
      thoughtSignature: signatureOf(call) || undefined,
    });
  };

  const assistantParts = (message: JsonObject, path: string): JsonObject[] => {
    ignored.add("reasoning_content", reasoningText(message));
    const content = [...partsFromChat(message["content"], `${path}.content`), ...textParts(message["refusal"])];
    const signature = signatureOf(message);
    if (signature) content.push({ text: "", ...content.pop(), thoughtSignature: signature });
    const calls = list(message["tool_calls"]).map((call, c) => callPart(call, `${path}.tool_calls[${c}]`));
    // The first call of a turn must be signed.
    const [first, ...rest] = calls;
    const isUnsigned = first && capabilities.signatures && !calls.some(({ thoughtSignature }) => thoughtSignature);
    if (!isUnsigned) return [...content, ...calls];
    return [...content, { ...first, thoughtSignature: skipSignatureValidation }, ...rest];
  };

  const resultParts = (message: JsonObject, path: string): JsonObject[] => {
    const id = text(message["tool_call_id"]);
    const name = functionNames.get(id) ?? text(message["name"]);
    if (!name)
      throw invalidValue(
        `${path}.tool_call_id`,
        `${path}.tool_call_id must be the id of a call in an earlier message.`,
      );
    const content = contentText(message["content"]);
    const mayBeObject = content.length <= parsableCharacters && content.trimStart().startsWith("{");
    if (mayBeObject) parsableCharacters -= content.length;
    const parsed = mayBeObject ? argumentsOf(content) : undefined;
    const parts = partsFromChat(message["content"], `${path}.content`);
    const media = parts.filter((part) => part["text"] === undefined);
    const isInside = ({ inlineData }: JsonObject) =>
      capabilities.mediaInToolResults &&
      inlineData !== undefined &&
      kindOf(text(object(inlineData)["mimeType"])) !== "audio";
    const inside = media.filter(isInside);
    const functionResponse = omitNullish({
      id: id || undefined,
      name,
      response: parsed ?? { output: content },
      parts: inside.length > 0 ? inside : undefined,
    });
    return [{ functionResponse }, ...media.filter((part) => !isInside(part))];
  };

  list(messages).forEach((message, m) => {
    const path = `messages[${m}]`;
    switch (message["role"]) {
      case "system":
      case "developer":
        system.push(...textParts(contentText(message["content"])));
        return;
      case "user":
        add("user", partsFromChat(message["content"], `${path}.content`));
        return;
      case "tool":
        add("results", resultParts(message, path));
        return;
      case "assistant":
        add("model", assistantParts(message, path));
        return;
      default:
        refuse(`${path}.role`, "messages of this role are not supported by this model");
    }
  });
  if (contents.length === 0) refuse("messages", "at least one non-system message must have content");
  return {
    system,
    contents: contents.map(({ source, parts }) => ({ role: source === "model" ? "model" : "user", parts })),
  };
}
