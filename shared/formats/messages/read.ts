import { invalidValue } from "#errors";
import { type Loose, object } from "../loose.ts";

/** Loose JSON as it is needed: what has another type is not there. */
export const text = (value: unknown): string => (typeof value === "string" ? value : "");

export const list = (value: unknown): readonly Loose[] => (Array.isArray(value) ? value.map(object) : []);

export const number = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

/** Only the fields that have a value. */
export const given = (fields: Loose): Loose =>
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

const headerSafe = /^[\w.-]{1,64}$/;
const mostNames = 32;

/** The names of what is left out. They go out in a header: nothing else may be in them. */
export function leftOut() {
  const names = new Set<string>();
  return {
    add(name: string, value: unknown): void {
      if (value !== undefined && value !== null && headerSafe.test(name) && names.size < mostNames) names.add(name);
    },
    names: (): readonly string[] => [...names],
  };
}

export type LeftOut = ReturnType<typeof leftOut>;
