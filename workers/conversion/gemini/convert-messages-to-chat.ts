import { audioFormat, isUploadId, kindOf, refuse } from "#formats";
import { type JsonObject, list, object, text, writeJson } from "#json";
import { contentOf, filePart, imagePart, resultMedia, textPart } from "../chat/parts.ts";
import type { IgnoredParams } from "../converter.ts";
import { decodeReasoning } from "../reasoning-state.ts";
import { chatToolCall } from "../tool-calls.ts";
import { signatureField } from "./reasoning.ts";

interface LocatedPart {
  readonly part: JsonObject;
  readonly path: string;
}

interface Turn {
  readonly isModel: boolean;
  readonly parts: LocatedPart[];
}

interface Call {
  readonly id: string;
  readonly name: string;
}

type PendingCalls = ReturnType<typeof createPendingCalls>;

/**
 * Calls without a result, in order. Maps keep lookups fast: a request may have thousands of calls with long, similar ids.
 */
function createPendingCalls() {
  const pending = new Set<Call>();
  const byId = new Map<unknown, Call[]>();
  const byName = new Map<unknown, Call[]>();
  const add = (calls: typeof byId, key: string, call: Call) => {
    const queue = calls.get(key);
    if (queue) queue.push(call);
    else calls.set(key, [call]);
  };
  const takeFrom = (queue: Call[] = []): Call | undefined => {
    for (let call = queue.shift(); call; call = queue.shift()) if (pending.delete(call)) return call;
    return undefined;
  };
  return {
    add(call: Call): void {
      pending.add(call);
      add(byId, call.id, call);
      add(byName, call.name, call);
    },
    /** Removes the call that a result answers: the one with its id, else the first with its name. */
    take: ({ id, name }: JsonObject): Call | undefined => takeFrom(byId.get(id)) ?? takeFrom(byName.get(name)),
  };
}

/** Joins adjacent contents of one role: clients store each event of a stream as a separate content. */
function joinTurns(contents: readonly JsonObject[]): Turn[] {
  const turns: Turn[] = [];
  contents.forEach(({ role, parts }, c) => {
    const isModel = text(role).toLowerCase() === "model";
    const located = list(parts).map((part, p) => ({ part, path: `contents[${c}].parts[${p}]` }));
    const last = turns.at(-1);
    if (last?.isModel === isModel) last.parts.push(...located);
    else turns.push({ isModel, parts: located });
  });
  return turns;
}

/** `data` is base64, or the id of an upload. */
function inlinePart(mime: string, data: string): JsonObject {
  const isUpload: boolean = isUploadId(data);
  const address = isUpload ? data : `data:${mime};base64,${data}`;
  switch (kindOf(mime)) {
    case "image":
      return imagePart(address);
    case "audio":
      return { type: "input_audio", input_audio: { data, format: audioFormat(mime) } };
    case "file":
      if (/^text\//i.test(mime) && !isUpload) return textPart(Buffer.from(data, "base64").toString());
      return filePart(address);
  }
}

function linkedPart(mime: string, link: string, path: string): JsonObject {
  switch (kindOf(mime)) {
    case "image":
      return imagePart(link);
    case "audio":
      return refuse(`${path}.fileUri`, "this model accepts audio only as inlineData or an upload");
    case "file":
      return filePart(link);
  }
}

/** The media of a part, or of a tool's result. */
function mediaParts(part: JsonObject, path: string): JsonObject[] {
  return (["inlineData", "fileData"] as const).flatMap((field) => {
    const media = part[field];
    if (typeof media !== "object" || media === null) return [];
    const { mimeType, data, fileUri } = object(media);
    const mime = text(mimeType);
    const content = text(field === "inlineData" ? data : fileUri);
    const mediaPath = `${path}.${field}`;
    if (/^video\//i.test(mime)) refuse(`${mediaPath}.mimeType`, "this model does not accept video");
    const isLink = field === "fileData" && !isUploadId(content);
    return [isLink ? linkedPart(mime, content, mediaPath) : inlinePart(mime, content)];
  });
}

const hints = ["videoMetadata", "mediaResolution", "partMetadata", "speechMetadata"];

function userParts({ part, path }: LocatedPart, ignored: IgnoredParams): JsonObject[] {
  for (const hint of hints) ignored.add(hint, part[hint]);
  const content = text(part["text"]);
  return [...(content ? [textPart(content)] : []), ...mediaParts(part, path)];
}

/** A single `output` string is the result as text; any other response becomes JSON. */
function resultText(response: unknown, path: string): string {
  const { output } = object(response);
  if (typeof output === "string" && Object.keys(object(response)).length === 1) return output;
  return writeJson(object(response), path);
}

function userToChat(parts: readonly LocatedPart[], pending: PendingCalls, ignored: IgnoredParams): JsonObject[] {
  const results: JsonObject[] = [];
  const content: JsonObject[] = [];
  for (const each of parts) {
    const { functionResponse } = each.part;
    if (typeof functionResponse === "object" && functionResponse !== null) {
      const path = `${each.path}.functionResponse`;
      const result = object(functionResponse);
      const { id } =
        pending.take(result) ?? refuse(`${path}.name`, "there is no earlier call of this function without a result");
      results.push({ role: "tool", tool_call_id: id, content: resultText(result["response"], `${path}.response`) });
      const media = list(result["parts"]).flatMap((part, p) => mediaParts(part, `${path}.parts[${p}]`));
      content.push(...resultMedia(id, media));
    }
    content.push(...userParts(each, ignored));
  }
  return content.length > 0 ? [...results, { role: "user", content: contentOf(content) }] : results;
}

/** Stands in for the id of a call that has none; unique by position. */
const positionId = (path: string): string => `call_${(path.match(/\d+/g) ?? []).join("_")}`;

function modelToChat(parts: readonly LocatedPart[], pending: PendingCalls): JsonObject[] {
  let content = "";
  let reasoning = "";
  let signature: unknown;
  const details: JsonObject[] = [];
  const calls: JsonObject[] = [];
  for (const { part, path } of parts) {
    if (mediaParts(part, path).length > 0) refuse(path, "this model does not accept media in a turn of the model");
    // Another model cannot use the thoughts of this provider's models.
    if (part["thought"] !== true) content += text(part["text"]);
    const { functionCall } = part;
    const state = decodeReasoning(part["thoughtSignature"]);
    const thoughtSignature = state ? undefined : part["thoughtSignature"];
    reasoning += state?.reasoning_content ?? "";
    details.push(...(state?.reasoning_details ?? []));
    if (typeof functionCall !== "object" || functionCall === null) {
      signature = text(thoughtSignature) || signature;
      continue;
    }
    const { id, name, args } = object(functionCall);
    const call = { id: text(id) || positionId(path), name: text(name) };
    pending.add(call);
    const callArguments = writeJson(object(args), `${path}.functionCall.args`);
    calls.push({ ...chatToolCall(call.id, name, callArguments), ...signatureField(thoughtSignature) });
  }
  if (!content && calls.length === 0) return [];
  const state = {
    ...(reasoning && { reasoning_content: reasoning }),
    ...(details.length > 0 && { reasoning_details: details }),
  };
  const toolCalls = calls.length > 0 && { tool_calls: calls };
  return [{ role: "assistant", content: content || null, ...state, ...toolCalls, ...signatureField(signature) }];
}

export function convertMessagesToChat(contents: unknown, ignored: IgnoredParams): JsonObject[] {
  const pending = createPendingCalls();
  return joinTurns(list(contents)).flatMap(({ isModel, parts }) =>
    isModel ? modelToChat(parts, pending) : userToChat(parts, pending, ignored),
  );
}
