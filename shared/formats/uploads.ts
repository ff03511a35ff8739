import { invalidValue } from "#errors";
import { type JsonObject, object } from "#json";
import type { UploadRef } from "./types.ts";

const uploadId = /^upl_[0-9A-Za-z]{1,64}$/;
/** Deeper than any meaningful request, and shallow enough for the stack. */
const maxDepth = 64;

export const isUploadId = (value: unknown): value is string => typeof value === "string" && uploadId.test(value);

export function uploadIn(
  holder: unknown,
  fields: readonly string[],
  path: string,
  kind?: UploadRef["kind"],
): UploadRef | undefined {
  const values = object(holder);
  for (const field of fields) {
    const id = values[field];
    if (isUploadId(id)) return { id, param: `${path}.${field}`, ...(kind && { kind }) };
  }
  return undefined;
}

/** Bounds the time for which one body blocks the event loop. */
const maxValues = 100_000;
/** More than any model accepts, and few enough for one query. */
const maxUploads = 100;

export function addUpload(to: UploadRef[], ref: UploadRef): void {
  if (to.length === maxUploads)
    throw invalidValue(ref.param, `${ref.param}: a request names at most ${maxUploads} uploads.`);
  to.push(ref);
}

/** Refuses deep or large bodies before validation, which is slow on a million values. */
export const checkShape = (body: unknown): void => void findUploads(body, "");

/** Finds every string that is the id of an upload, with its path. Skips the top-level fields in `except`. */
export function findUploads(
  value: unknown,
  at: string,
  kind?: UploadRef["kind"],
  except: readonly string[] = [],
): UploadRef[] {
  const found: UploadRef[] = [];
  let values = 0;
  const visit = (each: unknown, param: string, depth: number): void => {
    if (++values > maxValues)
      throw invalidValue(at || undefined, `${at || "The body"} has more than ${maxValues} values.`);
    if (isUploadId(each)) return addUpload(found, { id: each, param, kind });
    if (typeof each !== "object" || each === null) return;
    if (depth === maxDepth) throw invalidValue(param, `${param}: is nested too deep.`);
    if (Array.isArray(each)) return each.forEach((item, i) => visit(item, `${param}[${i}]`, depth + 1));
    // Avoids Object.entries, because there may be a million fields.
    for (const field in each) {
      if (depth === 0 && except.includes(field)) continue;
      visit((each as JsonObject)[field], param ? `${param}.${field}` : field, depth + 1);
    }
  };
  visit(value, at, 0);
  return found;
}
