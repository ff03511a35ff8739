import { invalidValue } from "#errors";
import { type JsonObject, object } from "./loose.ts";

/** Loose JSON as it is needed: what has another type is not there. */
export const text = (value: unknown): string => (typeof value === "string" ? value : "");

export const list = (value: unknown): readonly JsonObject[] => (Array.isArray(value) ? value.map(object) : []);

export const strings = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];

export const number = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

/** A count of tokens that can be believed. */
export const isCount = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 1e9;

/** A count of tokens; 0 for what cannot be one. */
export const count = (value: unknown): number => (isCount(value) ? value : 0);

/** As callers mean it: null, and a list or a text without anything in it, ask for nothing. */
export const isSet = (value: unknown): boolean =>
  value !== undefined && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0);

/** Only the fields that have a value. */
export const given = (fields: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));

/** What JSON.parse takes at any depth, JSON.stringify does not. */
export function writeJson(value: unknown, at: string): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw invalidValue(at, `${at}: is nested too deep.`);
  }
}

/** What a message or a delta says of its reasoning, under either of the names that servers use. */
export const reasoningText = (message: JsonObject): string =>
  text(message["reasoning_content"]) || text(message["reasoning"]);

/** What a chat message says: some servers send it in parts. */
export const contentText = (content: unknown): string =>
  text(content) ||
  list(content)
    .map((part) => text(part["text"]) || text(part["refusal"]))
    .join("");

/** The first choice of a chat answer or chunk, for formats that have one answer. */
export const firstChoice = (choices: unknown): JsonObject | undefined =>
  list(choices).find(({ index }, position) => (typeof index === "number" ? index : position) === 0);
