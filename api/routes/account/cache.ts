import { z } from "zod";
import { fields, orNull, tag, usd } from "../../http/fields.ts";
import { localsOf } from "../../http/headers.ts";
import { label } from "../../http/input.ts";
import { route } from "./route.ts";
import { spanOf } from "./usage.ts";

/** The response cache of an account (docs/guides/response-cache.md). */

const scope = "manage" as const;
const date = z.iso.date("must be a day, like 2026-11-23").meta({ example: "2026-11-23" });

const sums = {
  hits: z.int().describe("Calls that were answered from the cache"),
  coalesced: z.int().describe("Those of the hits that waited for an equal call to end"),
  misses: z.int().describe("Calls that ran, and whose answers were then stored if they could be"),
  refreshes: z.int().describe("Calls that asked to replace their entry"),
  bypasses: z.int().describe("Calls that asked for the cache and could not use it"),
  hit_rate: orNull(z.number().min(0).max(1)).describe("hits / (hits + misses); null if there were neither"),
  saved_usd: usd.describe("What the hits would have cost"),
};

const cacheUsage = fields({
  object: tag("cache_usage"),
  available: z.boolean().describe("False if the service has no response cache"),
  ...sums,
  data: z.array(fields({ date, ...sums })).describe("By day; days without calls that used the cache are missing"),
  keys: z.array(fields({ key: z.string(), ...sums })).describe("By key, the most hits first; at most 1,000"),
}).meta({ id: "CacheUsage" });

interface Counts {
  readonly hits: number;
  readonly misses: number;
}

const withRate = <Row extends Counts>(row: Row) => {
  const { hits, misses } = row;
  return { ...row, hitRate: hits + misses > 0 ? hits / (hits + misses) : null };
};

export const cacheRoutes = [
  route({
    method: "get",
    path: "/v1/cache",
    operationId: "getCacheUsage",
    summary: "How the account's calls used the response cache, by day and by key (scope `manage`)",
    description: "A call counts on its UTC day, about a second later. Counts are kept for 400 days.",
    scope,
    query: {
      from: date.optional().describe("The first day; default: 30 days before the end of `to`"),
      to: date.optional().describe("The last day; default: the current one. At most 366 days"),
    },
    answers: { 200: "The counts" },
    answer: cacheUsage,
    async handle({ cacheUsage, responseCache, clock }, { who: { account }, query }) {
      const span = spanOf(clock.now(), { ...query, groupBy: ["day"], previous: false });
      const { total, days, keys } = await cacheUsage.read(account, span);
      const available = responseCache.isConfigured;
      return { ...withRate(total), available, data: days.map(withRate), keys: keys.map(withRate) };
    },
  }),
  route({
    method: "delete",
    path: "/v1/cache",
    operationId: "clearCache",
    summary: "Delete the account's entries in the response cache at once (scope `manage`)",
    description: "Also succeeds if the service has no response cache: then there is nothing to delete.",
    scope,
    query: { key: label.optional().describe("Only the entries under this `x-xm-cache-key`") },
    answers: { 200: "The entries were deleted" },
    answer: fields({ object: tag("cache"), deleted: z.literal(true) }).meta({ id: "DeletedCache" }),
    async handle({ responseCache, audit }, { who: { account, keyId }, query: { key }, res }) {
      // A custom key may describe the content that is to be deleted, so it is not recorded.
      const changes = { all: key === undefined };
      const { requestId } = localsOf(res);
      await audit.record(
        { who: keyId, action: "DELETE /v1/cache", targets: [account], changes, requestId },
        () => responseCache.clear(account, key),
        () => ({ status: res.statusCode }),
      );
      return { deleted: true as const };
    },
  }),
];
