import { type GenerationCall, type JsonObject, UpstreamFailure } from "../provider.ts";
import { fieldsIn, isObject, pick } from "../wire/json.ts";

/** A file that an output names. */
export interface NamedFile {
  /** An http, https or data URL. */
  readonly url: string;
  /** What the output says of the file. */
  readonly about: JsonObject;
}

const maxDepth = 32;
const maxFiles = 64;
const maxRestCharacters = 8 * 1024 * 1024;

const fileFields = ["width", "height", "duration", "fps"];
/** These fields hold text, even where it looks like a URL. */
const textFields = /text|prompt|transcript|lyrics/i;

/**
 * The files that an output names, each once and in their order, and what remains of the output. Models answer in any shape:
 * a URL, a list of URLs, or objects with a `url` at any depth. URLs of the input are not files of the output.
 */
export function findFiles(
  output: unknown,
  { input, uploads }: GenerationCall,
): { readonly files: readonly NamedFile[]; readonly rest: JsonObject } {
  const files = new Map<string, NamedFile>();
  const given = new Set<unknown>([...uploads.values()].map(({ link }) => link));
  for (const { value } of fieldsIn(input, "")) given.add(value);
  const isGiven = (url: string) => !/^data:/i.test(url) && given.has(url);
  const add = (url: string, about: JsonObject): undefined => {
    if (files.size < maxFiles && !files.has(url) && !isGiven(url)) files.set(url, { url, about });
  };
  const visit = (value: unknown, field: string, depth: number): unknown => {
    if (typeof value === "string") return isUrl(value) && !textFields.test(field) ? add(value, {}) : value;
    if (typeof value !== "object" || value === null) return value;
    if (depth === maxDepth) throw new UpstreamFailure("unavailable", "an output that is nested too deep");
    if (isObject(value) && typeof value.url === "string" && isUrl(value.url))
      return add(value.url, pick(value, fileFields));
    const entries = Object.entries(value).flatMap(([name, each]) => {
      const rest = visit(each, Array.isArray(value) ? field : name, depth + 1);
      return rest === undefined ? [] : [[name, rest] as const];
    });
    if (entries.length === 0) return undefined;
    return Array.isArray(value) ? entries.map(([, each]) => each) : Object.fromEntries(entries);
  };
  const rest = asObject(visit(output, "", 0));
  if (JSON.stringify(rest).length > maxRestCharacters)
    throw new UpstreamFailure("unavailable", `an output of more than ${maxRestCharacters} characters`);
  return { files: [...files.values()], rest };
}

const isUrl = (text: string) => (text.length <= 8_192 && /^https?:\/\/\S+$/i.test(text)) || /^data:\S/i.test(text);

function asObject(rest: unknown): JsonObject {
  if (rest === undefined || rest === null) return {};
  if (isObject(rest)) return rest;
  if (typeof rest === "string") return { text: rest };
  // Models that stream answer with a list of parts.
  if (Array.isArray(rest) && rest.every((each) => typeof each === "string")) return { text: rest.join("") };
  return { output: rest };
}
