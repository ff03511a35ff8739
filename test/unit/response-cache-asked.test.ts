import type { Request } from "express";
import { expect, test } from "vitest";
import { cacheRequestOf } from "../../api/response-cache/asked.ts";

const off = { enabled: false, ttlSeconds: 300, locked: false };
const on = { enabled: true, ttlSeconds: 60, locked: false };
const locked = { enabled: false, ttlSeconds: 300, locked: true };
const asked = (key: typeof off, headers: Record<string, string>) => () =>
  cacheRequestOf({ headers } as unknown as Request, key);

const use = { mode: "use", ttlSeconds: 300, scope: "key" };
test.each([
  ["no header", off, {}, undefined],
  ["no header, and a key that caches", on, {}, { ...use, ttlSeconds: 60 }],
  ["no header, and a locked key", locked, {}, undefined],
  ["true", off, { "x-xm-cache": "true" }, use],
  ["true, and a key that caches", on, { "x-xm-cache": "true" }, { ...use, ttlSeconds: 60 }],
  ["true, and a locked key", locked, { "x-xm-cache": "true" }, undefined],
  ["false", on, { "x-xm-cache": "false" }, undefined],
  ["refresh", off, { "x-xm-cache": "refresh" }, { ...use, mode: "refresh" }],
  ["refresh, and a locked key", locked, { "x-xm-cache": "refresh" }, undefined],
  ["only other headers", off, { "x-xm-cache-ttl": "5", "x-xm-cache-key": "a" }, undefined],
  ["a TTL", on, { "x-xm-cache-ttl": "5" }, { ...use, ttlSeconds: 5 }],
  ["a short TTL", on, { "x-xm-cache-ttl": "-1" }, { ...use, ttlSeconds: 1 }],
  ["a long TTL", on, { "x-xm-cache-ttl": "9".repeat(400) }, { ...use, ttlSeconds: 86_400 }],
  [
    "a key and a scope",
    off,
    { "x-xm-cache": "true", "x-xm-cache-key": "a".repeat(256), "x-xm-cache-scope": "account" },
    { ...use, key: "a".repeat(256), scope: "account" },
  ],
])("%s", (_, key, headers, expected) => expect(asked(key, headers)()).toEqual(expected));

test.each([
  ["x-xm-cache", "TRUE"],
  ["x-xm-cache", ""],
  ["x-xm-cache", "true, false"],
  ...["", "5s", "1.5", "1e3", "0x10"].map((ttl) => ["x-xm-cache-ttl", ttl] as const),
  ["x-xm-cache-key", ""],
  ["x-xm-cache-key", "a".repeat(257)],
  ["x-xm-cache-key", "é"],
  ["x-xm-cache-scope", "all"],
] as const)("%s: '%s' is refused, whether the cache is on or off", (name, value) => {
  const error = expect.objectContaining({ status: 400, code: "invalid_value", param: name });
  for (const key of [on, off, locked]) expect(asked(key, { [name]: value })).toThrow(error);
});
