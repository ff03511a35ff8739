import { invalidValue } from "#errors";
import type { JsonObject } from "./loose.ts";
import type { UploadRef } from "./types.ts";

const uploadId = /^upl_[0-9A-Za-z]{1,64}$/;
/** Deeper than any request that means something, and shallow enough for the stack. */
const deepest = 64;

export const isUploadId = (value: unknown): value is string => typeof value === "string" && uploadId.test(value);

/** More than any request has, and few enough not to hold up everyone else. */
const mostValues = 100_000;
/** More than any model takes, and few enough to look up at once. */
const mostUploads = 100;

export function addUpload(to: UploadRef[], ref: UploadRef): void {
  if (to.length === mostUploads)
    throw invalidValue(ref.param, `${ref.param}: a request names at most ${mostUploads} uploads.`);
  to.push(ref);
}

/** Every string that is an upload's id, with the path to it; not in the fields of `besides`. */
export function findUploads(
  value: unknown,
  at: string,
  kind?: UploadRef["kind"],
  besides: readonly string[] = [],
): UploadRef[] {
  const found: UploadRef[] = [];
  let values = 0;
  const visit = (each: unknown, param: string, depth: number): void => {
    if (++values > mostValues)
      throw invalidValue(at || undefined, `${at || "The body"} has more than ${mostValues} values.`);
    if (isUploadId(each)) return addUpload(found, { id: each, param, kind });
    if (typeof each !== "object" || each === null) return;
    if (depth === deepest) throw invalidValue(param, `${param}: is nested too deep.`);
    if (Array.isArray(each)) return each.forEach((item, i) => visit(item, `${param}[${i}]`, depth + 1));
    // No list of the fields: there may be a million of them.
    for (const field in each) {
      if (depth === 0 && besides.includes(field)) continue;
      visit((each as JsonObject)[field], param ? `${param}.${field}` : field, depth + 1);
    }
  };
  visit(value, at, 0);
  return found;
}
