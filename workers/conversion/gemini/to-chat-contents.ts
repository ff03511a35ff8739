import { invalidValue } from "#errors";
import { audioFormat, isUploadId, type JsonObject, kindOf, list, object, text, writeJson } from "#formats";
import type { IgnoredParams } from "../ignored-params.ts";
import { signed } from "./signature.ts";

/** A part, and where it stands. */
interface At {
  readonly part: JsonObject;
  readonly at: string;
}

interface Turn {
  readonly isModel: boolean;
  readonly parts: At[];
}

/** A call that waits for its result. */
interface Call {
  readonly id: string;
  readonly name: string;
}

/** Contents of one side that follow each other are one turn: clients keep what a stream brought piece by piece. */
function turnsOf(contents: readonly JsonObject[]): Turn[] {
  const turns: Turn[] = [];
  contents.forEach(({ role, parts }, c) => {
    const isModel = text(role).toLowerCase() === "model";
    const here = list(parts).map((part, p) => ({ part, at: `contents[${c}].parts[${p}]` }));
    const last = turns.at(-1);
    if (last?.isModel === isModel) last.parts.push(...here);
    else turns.push({ isModel, parts: here });
  });
  return turns;
}

const textPart = (value: string): JsonObject => ({ type: "text", text: value });

function inlinePart(mime: string, data: string, at: string): JsonObject {
  const isUpload: boolean = isUploadId(data);
  const address = isUpload ? data : `data:${mime};base64,${data}`;
  switch (kindOf(mime)) {
    case "image":
      return { type: "image_url", image_url: { url: address } };
    case "audio":
      return { type: "input_audio", input_audio: { data, format: audioFormat(mime) } };
    case "file":
      refuseVideo(mime, at);
      if (isUpload) return { type: "file", file: { file_id: data } };
      if (/^text\//i.test(mime)) return textPart(Buffer.from(data, "base64").toString());
      return { type: "file", file: { filename: "document.pdf", file_data: address } };
  }
}

function refuseVideo(mime: string, at: string): void {
  if (/^video\//i.test(mime)) throw invalidValue(`${at}.mimeType`, `${at}.mimeType: this model takes no video.`);
}

function linkedPart(mime: string, link: string, at: string): JsonObject {
  if (isUploadId(link)) return inlinePart(mime, link, at);
  refuseVideo(mime, at);
  switch (kindOf(mime)) {
    case "image":
      return { type: "image_url", image_url: { url: link } };
    case "audio":
      throw invalidValue(`${at}.fileUri`, `${at}.fileUri: this model takes audio only as inlineData or an upload.`);
    case "file":
      return { type: "file", file: { filename: "document.pdf", file_data: link } };
  }
}

/** The media of a part, or of a tool's result. */
function mediaParts(part: JsonObject, at: string): JsonObject[] {
  const parts: JsonObject[] = [];
  const { inlineData, fileData } = part;
  if (typeof inlineData === "object" && inlineData !== null) {
    const { mimeType, data } = object(inlineData);
    parts.push(inlinePart(text(mimeType), text(data), `${at}.inlineData`));
  }
  if (typeof fileData === "object" && fileData !== null) {
    const { mimeType, fileUri } = object(fileData);
    parts.push(linkedPart(text(mimeType), text(fileUri), `${at}.fileData`));
  }
  return parts;
}

const hints = ["videoMetadata", "mediaResolution", "partMetadata", "speechMetadata"];

function userParts({ part, at }: At, left: IgnoredParams): JsonObject[] {
  for (const hint of hints) left.add(hint, part[hint]);
  const said = text(part["text"]);
  return [...(said ? [textPart(said)] : []), ...mediaParts(part, at)];
}

/** By its id, then by its name and order. */
function answered(waiting: Call[], result: JsonObject, at: string): Call {
  const byId = waiting.findIndex(({ id }) => id === result["id"]);
  const found = byId >= 0 ? byId : waiting.findIndex(({ name }) => name === result["name"]);
  const [call] = found >= 0 ? waiting.splice(found, 1) : [];
  if (!call) throw invalidValue(`${at}.name`, `${at}.name: no call of this function waits for a result.`);
  return call;
}

/** `output` alone is the result as text; all else goes as it is. */
function resultText(response: unknown, at: string): string {
  const { output } = object(response);
  if (typeof output === "string" && Object.keys(object(response)).length === 1) return output;
  return writeJson(object(response), at);
}

/** Chat's tool messages are text: what is none comes in the user's message after them. */
function userToChat(parts: readonly At[], waiting: Call[], left: IgnoredParams): JsonObject[] {
  const results: JsonObject[] = [];
  const said: JsonObject[] = [];
  for (const each of parts) {
    const { functionResponse } = each.part;
    if (typeof functionResponse === "object" && functionResponse !== null) {
      const at = `${each.at}.functionResponse`;
      const result = object(functionResponse);
      const { id } = answered(waiting, result, at);
      results.push({ role: "tool", tool_call_id: id, content: resultText(result["response"], `${at}.response`) });
      const media = list(result["parts"]).flatMap((part, p) => mediaParts(part, `${at}.parts[${p}]`));
      if (media.length > 0) said.push(textPart(`Of the result of ${id}:`), ...media);
    }
    said.push(...userParts(each, left));
  }
  if (said.length === 0) return results;
  const [only] = said;
  const isOneText = said.length === 1 && only?.["type"] === "text";
  return [...results, { role: "user", content: isOneText ? only["text"] : said }];
}

/** Where a call has no id its place is one. */
const placeId = (at: string): string => `call_${(at.match(/\d+/g) ?? []).join("_")}`;

function modelToChat(parts: readonly At[], waiting: Call[]): JsonObject[] {
  let said = "";
  let signature: unknown;
  const calls: JsonObject[] = [];
  for (const { part, at } of parts) {
    const [media] = mediaParts(part, at);
    if (media) throw invalidValue(at, `${at}: this model takes no media as its own words.`);
    // Thoughts are the provider's own; for another model they mean nothing.
    if (part["thought"] !== true) said += text(part["text"]);
    const { functionCall, thoughtSignature } = part;
    if (typeof functionCall !== "object" || functionCall === null) {
      signature = text(thoughtSignature) || signature;
      continue;
    }
    const { id, name, args } = object(functionCall);
    const call = { id: text(id) || placeId(at), name: text(name) };
    waiting.push(call);
    calls.push({
      id: call.id,
      type: "function",
      function: { name: call.name, arguments: writeJson(object(args), `${at}.functionCall.args`) },
      ...signed(thoughtSignature),
    });
  }
  if (!said && calls.length === 0) return [];
  return [
    { role: "assistant", content: said || null, ...(calls.length > 0 && { tool_calls: calls }), ...signed(signature) },
  ];
}

export const systemText = (instruction: unknown): string =>
  list(object(instruction)["parts"])
    .map((part) => text(part["text"]))
    .filter(Boolean)
    .join("\n\n");

export function messagesOf(contents: unknown, left: IgnoredParams): JsonObject[] {
  const waiting: Call[] = [];
  return turnsOf(list(contents)).flatMap(({ isModel, parts }) =>
    isModel ? modelToChat(parts, waiting) : userToChat(parts, waiting, left),
  );
}
