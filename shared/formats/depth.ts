import { invalidValue } from "#errors";
import { object } from "./loose.ts";

/** Deeper than any request that means something, and shallow enough for the stack of whoever writes it out again. */
const deepest = 128;

// No lists of fields and values are made: every request of every format is walked.
function isDeep(value: object, left: number): boolean {
  if (left === 0) return true;
  if (Array.isArray(value)) {
    for (const each of value) if (typeof each === "object" && each !== null && isDeep(each, left - 1)) return true;
    return false;
  }
  const fields = object(value);
  for (const field in fields) {
    const each = fields[field];
    if (typeof each === "object" && each !== null && isDeep(each, left - 1)) return true;
  }
  return false;
}

/** What JSON.parse takes at any depth, JSON.stringify and whatever else recurs does not. */
export function refuseDeep(body: unknown): void {
  const fields = object(body);
  for (const field in fields) {
    const value = fields[field];
    if (typeof value === "object" && value !== null && isDeep(value, deepest))
      throw invalidValue(field, `${field}: is nested too deep.`);
  }
}
