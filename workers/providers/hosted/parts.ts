import { type GenerationCall, type JsonObject, UpstreamFailure } from "../provider.ts";
import { isObject, pick } from "../wire/answers.ts";

/** A file that an output names. */
export interface NamedFile {
  /** http(s), or a data: address. */
  readonly url: string;
  readonly about: JsonObject;
}

interface Parts {
  /** Each address once, in the order in which they stand there. */
  readonly files: readonly NamedFile[];
  /** What there is beside them. */
  readonly rest: JsonObject;
}

const deepest = 32;
const mostFiles = 64;
const restLimitCharacters = 8 * 1024 * 1024;

/** Told of a file beside its address. */
const told = ["width", "height", "duration", "fps"];
/** What a model was told or heard is a text, whatever it looks like. */
const texts = /text|prompt|transcript|lyrics/i;

/**
 * Models answer as they like: an address, a list of such, objects with an address in `url` at any place. What was in the
 * input is none of it.
 */
export function partsOf(output: unknown, { input, uploads }: Pick<GenerationCall, "input" | "uploads">): Parts {
  const files = new Map<string, NamedFile>();
  const given = JSON.stringify([input, [...uploads.values()].map(({ link }) => link)]);
  const isGiven = (url: string) => !/^data:/i.test(url) && given.includes(JSON.stringify(url));
  const take = (url: string, about: JsonObject): undefined => {
    if (files.size < mostFiles && !files.has(url) && !isGiven(url)) files.set(url, { url, about });
  };
  const visit = (value: unknown, field: string, depth: number): unknown => {
    if (typeof value === "string") return isAddress(value) && !texts.test(field) ? take(value, {}) : value;
    if (typeof value !== "object" || value === null) return value;
    if (depth === deepest) throw new UpstreamFailure("unavailable", "an output that is nested too deep");
    if (isObject(value) && typeof value.url === "string" && isAddress(value.url))
      return take(value.url, pick(value, told));
    const entries = Object.entries(value).flatMap(([name, each]) => {
      const left = visit(each, Array.isArray(value) ? field : name, depth + 1);
      return left === undefined ? [] : [[name, left] as const];
    });
    if (entries.length === 0) return undefined;
    return Array.isArray(value) ? entries.map(([, each]) => each) : Object.fromEntries(entries);
  };
  const rest = named(visit(output, "", 0));
  if (JSON.stringify(rest).length > restLimitCharacters)
    throw new UpstreamFailure("unavailable", `an output of more than ${restLimitCharacters} characters`);
  return { files: [...files.values()], rest };
}

const isAddress = (text: string) => (text.length <= 8_192 && /^https?:\/\/\S+$/i.test(text)) || /^data:\S/i.test(text);

function named(rest: unknown): JsonObject {
  if (rest === undefined || rest === null) return {};
  if (isObject(rest)) return rest;
  if (typeof rest === "string") return { text: rest };
  // Models that stream answer in pieces.
  if (Array.isArray(rest) && rest.every((each) => typeof each === "string")) return { text: rest.join("") };
  return { output: rest };
}
