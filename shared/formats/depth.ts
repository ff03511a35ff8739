import { invalidValue } from "#errors";
import { object } from "./loose.ts";

/** Deeper than any request that means something, and shallow enough for the stack of whoever writes it out again. */
const deepest = 128;
/** More lists and objects than any request has, and few enough not to hold up everyone else while they are read. */
const mostHolders = 50_000;

/** Of JSON: whether there are more levels below it. No lists of fields and values are made: every request is walked. */
export function isDeeper(value: object, levels: number, count?: { left: number }): boolean {
  if (levels === 0) return true;
  if (count) count.left--;
  if (Array.isArray(value)) {
    for (const each of value)
      if (typeof each === "object" && each !== null && isDeeper(each, levels - 1, count)) return true;
    return false;
  }
  const fields = object(value);
  for (const field in fields) {
    const each = fields[field];
    if (typeof each === "object" && each !== null && isDeeper(each, levels - 1, count)) return true;
  }
  return false;
}

/** What JSON.parse takes at any depth and in any number, JSON.stringify and whoever else reads it does not. */
export function refuseDeep(body: unknown): void {
  const fields = object(body);
  const count = { left: mostHolders };
  for (const field in fields) {
    const value = fields[field];
    if (typeof value !== "object" || value === null) continue;
    if (isDeeper(value, deepest, count)) throw invalidValue(field, `${field}: is nested too deep.`);
    if (count.left < 0) throw invalidValue(field, `${field}: has more than ${mostHolders} lists and objects.`);
  }
}
