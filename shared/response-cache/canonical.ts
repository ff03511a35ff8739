import { type JsonObject, object } from "#json";

/** Gemini's format accepts names in any case, and with or without underscores. */
const spelling = (name: string) => name.toLowerCase().replaceAll("_", "");
/**
 * Under these fields the order of properties is part of what a model reads: schemas of tools and answers, examples of calls,
 * and the arguments and results of calls.
 */
const ordered = new Set(
  [
    "parameters",
    "parameters_json_schema",
    "input_schema",
    "input_examples",
    "json_schema",
    "schema",
    "response_schema",
    "response_json_schema",
    "guided_json",
    "structured_outputs",
    "arguments",
    "args",
    "response",
  ].map(spelling),
);
const isOrdered = (name: string, of: JsonObject) =>
  ordered.has(spelling(name)) || (name === "input" && Object.hasOwn(of, "type"));

/** Longer bodies are compared as they are, because sorting them would hold the event loop. */
const maxBytes = 256 * 1024;
/** A number that a double may not represent exactly: many digits, or a large exponent. */
const inexact = /\d{16}|[eE]\+?\d{3}/;

interface Body {
  /** The JSON text, its size in UTF-8, and its parsed value. */
  readonly text: string;
  readonly bytes: number;
  readonly value: unknown;
}

/**
 * The same text for bodies that differ only in white space, escapes or the order of properties. Arrays keep their order, and
 * so do schemas and the data of tool calls. Numbers are compared as parsed, those that a double does not represent by their
 * text.
 */
export function canonicalJson({ text, bytes, value }: Body): string {
  if (bytes > maxBytes) return `text ${text}`;
  return `json ${JSON.stringify(canonical(inexact.test(text) ? parseExactly(text) : value, false))}`;
}

/** Objects become pairs: an object would move properties whose names are integers, and could not have a `__proto__`. */
function canonical(value: unknown, keepsOrder: boolean): unknown {
  if (value instanceof InexactNumber) return { number: value.text };
  if (Array.isArray(value)) return value.map((each) => canonical(each, keepsOrder));
  if (typeof value !== "object" || value === null) return value;
  const from = value as JsonObject;
  const names = Object.keys(from);
  if (!keepsOrder) names.sort();
  return { pairs: names.map((name) => [name, canonical(from[name], keepsOrder || isOrdered(name, from))]) };
}

class InexactNumber {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

function parseExactly(text: string): unknown {
  return JSON.parse(text, (_name, value: unknown, context?: object) => {
    if (typeof value !== "number") return value;
    const isExact = Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
    return isExact ? value : new InexactNumber(String(object(context)["source"]));
  });
}
