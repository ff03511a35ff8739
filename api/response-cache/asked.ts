import type { Request } from "express";
import { z } from "zod";
import { type KeyCache, maxCacheTtlSeconds } from "#key-records";
import { parse } from "../http/input.ts";

export interface CacheRequest {
  readonly mode: "use" | "refresh";
  readonly ttlSeconds: number;
  readonly key?: string;
  readonly scope: "key" | "account";
}

/** Request headers, also for the OpenAPI document. */
export const cacheHeaders = {
  "x-xm-cache": z
    .enum(["true", "false", "refresh"])
    .optional()
    .describe(
      "`true` answers from the response cache or stores the answer there, `refresh` stores a new answer, `false` does neither; overrides the key's `cache`, unless that is locked",
    ),
  "x-xm-cache-ttl": z
    .string()
    .regex(/^-?\d+$/, "must be an integer")
    .optional()
    .meta({ example: "3600" })
    .describe(
      `Seconds for which the answer is stored, 1 to ${maxCacheTtlSeconds}; others are clamped. The default is the key's \`cache.ttl_seconds\``,
    ),
  "x-xm-cache-key": z
    .string()
    .min(1)
    .max(256)
    // Node decodes headers as Latin-1, but `DELETE /v1/cache?key=` is UTF-8.
    .regex(/^[\x20-\x7e]*$/, "must be ASCII")
    .optional()
    .describe("Takes the place of the body, so that requests with the same key have the same answer"),
  "x-xm-cache-scope": z
    .enum(["key", "account"])
    .optional()
    .describe("`account` shares answers with the other keys of the account that ask for it; the default is `key`"),
};
const headers = z.object(cacheHeaders);

/** The use of the response cache by headers or the key's default; undefined for none. Throws 400 for an invalid header. */
export function cacheRequestOf(req: Request, ofKey: KeyCache): CacheRequest | undefined {
  const {
    "x-xm-cache": asked = String(ofKey.enabled),
    "x-xm-cache-ttl": ttl = ofKey.ttlSeconds,
    "x-xm-cache-key": key,
    "x-xm-cache-scope": scope = "key",
  } = parse(headers, req.headers);
  if (asked === "false" || ofKey.locked) return undefined;
  const ttlSeconds = Math.min(Math.max(Number(ttl), 1), maxCacheTtlSeconds);
  return { mode: asked === "refresh" ? "refresh" : "use", ttlSeconds, ...(key !== undefined && { key }), scope };
}
