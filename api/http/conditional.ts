import type { Request, Response } from "express";

export interface Range {
  /** Both inclusive. */
  readonly start: number;
  readonly end: number;
}

/**
 * Whether the caller's copy is current, by `ETag` and `Last-Modified` of the answer (RFC 9110, section 13.2.2). Express's
 * `req.fresh` is false for every request with `Cache-Control: no-cache`, and `fetch` adds that to conditional requests.
 */
export function isFresh(req: Request, res: Response): boolean {
  const tags = req.get("if-none-match");
  if (tags !== undefined) {
    const etag = res.get("etag");
    return tags.split(",").some((tag) => tag.trim() === "*" || tag.trim().replace(/^W\//, "") === etag);
  }
  const since = Date.parse(req.get("if-modified-since") ?? "");
  return Date.parse(res.get("last-modified") ?? "") <= since;
}

/**
 * The part of a body that `Range` requests. Undefined means all of it: no such header, not a range of bytes, several ranges
 * (RFC 9110 lets a server ignore them), or an `If-Range` that does not match.
 */
export function rangeOf(req: Request, res: Response, bytes: number): Range | "unsatisfiable" | undefined {
  if (req.method !== "GET" || !isUnchanged(req.get("if-range"), res)) return undefined;
  const ranges = req.range(bytes);
  if (ranges === undefined || ranges === -2) return undefined;
  if (ranges === -1) return "unsatisfiable";
  return ranges.type === "bytes" && ranges.length === 1 ? ranges[0] : undefined;
}

/** Strong comparison, as section 13.1.5 requires: a weak tag never matches. */
const isUnchanged = (condition: string | undefined, res: Response): boolean =>
  condition === undefined || condition === res.get("etag") || condition === res.get("last-modified");
