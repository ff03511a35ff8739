import { z } from "zod";
import { address, between, secret, text } from "./fields.ts";

/** Accepts `host:port,[2001:db8::1]:port`. */
const hosts = z
  .string()
  .regex(
    /^(\[[\da-f:.]+\]|[^\s:,[\]/@]+):\d{1,5}(,(\[[\da-f:.]+\]|[^\s:,[\]/@]+):\d{1,5})*$/i,
    "must be host:port, separated by commas",
  )
  .optional();

/** Redis, MongoDB and the object storage. */
export const stores = {
  REDIS_URL: z
    .url({ protocol: /^rediss?$/ })
    .optional()
    .describe(
      "Redis or Valkey, version 7 or newer, with `maxmemory-policy noeviction`. **Required**: this, REDIS_SENTINELS or REDIS_CLUSTER_NODES",
    )
    .meta(secret),
  REDIS_SENTINELS: hosts.describe("Sentinels that monitor the primary, as a comma-separated list of host:port"),
  REDIS_SENTINEL_NAME: text.default("mymaster").describe("Name of the primary in the sentinels' configuration"),
  REDIS_SENTINEL_PASSWORD: text.optional().describe("Password of the sentinels").meta(secret),
  REDIS_CLUSTER_NODES: hosts.describe("Some nodes of a Redis Cluster, as a comma-separated list of host:port"),
  REDIS_USERNAME: text.optional().describe("Redis user, if REDIS_URL does not contain one"),
  REDIS_PASSWORD: text.optional().describe("Redis password, if REDIS_URL does not contain one").meta(secret),
  REDIS_TLS: z
    .stringbool()
    .default(false)
    .describe("`on`: TLS for Redis and its sentinels, like `rediss:` in REDIS_URL"),
  REDIS_DATABASE: between(
    "Database number, if REDIS_URL does not contain one. A cluster has only database 0, unless it supports several, as Valkey 9 can",
    0,
    65_535,
    0,
  ),
  CACHE_REDIS_URL: z
    .url({ protocol: /^rediss?$/ })
    .optional()
    .describe(
      "A second Redis or Valkey, version 7 or newer, with `maxmemory-policy allkeys-lru`, for the response cache. Without it, no response is cached",
    )
    .meta(secret),
  // It is not parsed as a URL, because it may name every member of a replica set.
  MONGODB_URI: z
    .string()
    .regex(/^mongodb(\+srv)?:\/\/[^\s/?#]+/, "must be a connection string")
    .describe("Connection string of a MongoDB replica set, version 6 or newer, including the database name")
    .meta(secret),
  S3_ENDPOINT: address.describe("Address of the S3-compatible object storage"),
  S3_PUBLIC_ENDPOINT: address
    .optional()
    .describe("Address of the same storage as callers and providers reach it, used in links for them"),
  S3_BUCKET: text.default("inference").describe("Bucket for uploads, generated files and large request bodies"),
  ARCHIVE_BUCKET: text
    .optional()
    .describe("Bucket for archived ledger entries; it should have versioning or object lock. Default: S3_BUCKET"),
  S3_REGION: text.default("us-east-1").describe("Region of the storage, used to sign requests"),
  S3_ACCESS_KEY_ID: text.describe("Access key of the storage").meta(secret),
  S3_SECRET_ACCESS_KEY: text.describe("Secret key of the storage").meta(secret),
};
