import { type JsonObject, number, object, text as textOf } from "#json";
import type { Format } from "./types.ts";

/**
 * An answer that is sent again gets a new id and a new time, and costs nothing. It is stored as a template, in which these
 * characters stand for the new values: JSON and events never contain them unescaped.
 */
const idMark = "\u0001";
const timeMark = "\u0002";

interface Identity {
  readonly id: string;
  readonly created?: string;
  /** The object with these fields, in an answer or in the first event of a stream. */
  readonly in: (answer: JsonObject) => JsonObject;
}

const plain: Identity = { id: "id", created: "created", in: (answer) => answer };
const identities: Readonly<Record<Format, Identity>> = {
  chat: plain,
  messages: { id: "id", in: (answer) => object(answer["message"] ?? answer) },
  responses: { id: "id", created: "created_at", in: (answer) => object(answer["response"] ?? answer) },
  gemini: { id: "responseId", in: (answer) => answer },
};

/** How an answer ends that must not be sent again: it failed, or the provider withheld it. */
const withheld: Readonly<Record<Format, RegExp>> = {
  chat: /"finish_reason": ?"(?:content_filter|error)"|"refusal": ?"[^"]/,
  messages: /"stop_reason": ?"refusal"|^event: error$/m,
  responses: /"reason": ?"content_filter"|"type": ?"(?:response\.failed|refusal)"|"status": ?"failed"/,
  gemini: /"finishReason": ?"(?!STOP"|MAX_TOKENS")|"blockReason"/,
};

/** Longer JSON is not searched for its id, and keeps it. */
const maxUnits = 1024 * 1024;
/** A shorter id could be part of something else. */
const minIdLength = 8;
const firstData = /^(?:data: ?|\[)(\{.*\}),?$/m;
const cost = /("usage": ?\{(?:[^{}]|\{[^{}]*\})*?)"cost_usd": ?"[\d.]+"/g;
const freeOfCharge = '$1"cost_usd":"0.00","cached_response":true';
/** The time at which a response ended. A client that compares it with its creation finds it later. */
const completed = /"completed_at": ?\d{10}(?=[,}])/g;
const showsCost = new Set<Format | undefined>(["chat", "responses"]);

function firstObject(text: string): JsonObject {
  const json = text.startsWith("{") ? text : firstData.exec(text)?.[1];
  if (json === undefined || json.length > maxUnits) return {};
  try {
    return object(JSON.parse(json));
  } catch {
    return {};
  }
}

type Replacement = readonly [from: string, to: string];

function replacementsIn(text: string, format: Format | undefined): readonly Replacement[] {
  const fields = format === undefined ? plain : identities[format];
  const found = fields.in(firstObject(text));
  const id = textOf(found[fields.id]);
  const prefix = /^[a-z]+[-_]/i.exec(id)?.[0] ?? "";
  const time = fields.created === undefined ? undefined : number(found[fields.created]);
  const pairs = (name: string, from: string, to: string): Replacement[] =>
    [":", ": "].flatMap((colon) =>
      // The end of a number is part of it.
      [",", "}"].map((end) => [`"${name}"${colon}${from}${end}`, `"${name}":${to}${end}`] as const),
    );
  return [
    ...(id.length >= minIdLength ? pairs(fields.id, JSON.stringify(id), `"${prefix}${idMark}"`) : []),
    ...(time === undefined ? [] : pairs(fields.created ?? "", String(time), timeMark)),
  ];
}

/** Converts an answer to a template, whole or as the parts of a stream that have whole events. */
export function toTemplate(format: Format | undefined) {
  let replacements: readonly Replacement[] | undefined;
  let isWithheld = false;
  return {
    convert(text: string): string {
      replacements ??= replacementsIn(text, format);
      isWithheld ||= format !== undefined && withheld[format].test(text);
      let converted = showsCost.has(format) && text.includes('"cost_usd"') ? text.replace(cost, freeOfCharge) : text;
      if (format === "responses") converted = converted.replace(completed, `"completed_at":${timeMark}`);
      for (const [from, to] of replacements) if (converted.includes(from)) converted = converted.replaceAll(from, to);
      return converted;
    },
    /** The converted text must not be sent again. */
    isWithheld: () => isWithheld,
  };
}

const sliceUnits = 64 * 1024;

/** The text for one request, in parts. */
export function* partsFrom(template: string, requestId: string, now: number): Generator<string> {
  for (let at = 0; at < template.length; ) {
    const end = at + sliceUnits;
    // A character of two units stays whole.
    const isSplit = template.codePointAt(end - 1) !== template.charCodeAt(end - 1);
    const next = isSplit && end < template.length ? end - 1 : end;
    yield fromTemplate(template.slice(at, next), requestId, now);
    at = next;
  }
}

/** The text for one request. */
export const fromTemplate = (template: string, requestId: string, now: number): string =>
  template.replaceAll(idMark, requestId.replace(/^req_/, "")).replaceAll(timeMark, String(Math.floor(now / 1_000)));
