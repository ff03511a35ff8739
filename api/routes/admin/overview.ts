import { z } from "zod";
import { pools } from "#jobs";
import { fields, orNull, tag, unixSecondsOfMs, usd } from "../../http/fields.ts";
import { route } from "./route.ts";
import { lastFailure, state } from "./workers.ts";

const counts = {
  calls: z.int().describe("Calls that ended, and requests that were refused before they became calls"),
  failed: z
    .int()
    .describe(
      "Calls with the status `failed`, as `GET /admin/v1/requests` has them, jobs and lines of batches included",
    ),
  refused: z.int().describe("Requests that were refused before they became calls, whatever their status"),
  charged_usd: usd,
};
const count = fields(counts).meta({ id: "TrafficCount" });
const point = fields({ at: unixSecondsOfMs.describe("Start of the interval"), ...counts }).meta({ id: "TrafficPoint" });
const open = fields({ open: z.int(), oldest_seconds: z.int() });

export const overview = fields({
  object: tag("overview"),
  at: unixSecondsOfMs,
  traffic: orNull(
    fields({
      last_5_minutes: count,
      last_hour: count,
      last_day: count,
      minutes: z.array(point).describe("The last 60, oldest first"),
      hours: z.array(point).describe("The last 24, oldest first"),
    }),
  ).describe("Counts of all processes, up to 5 s old; not taken from the ledger"),
  pools: orNull(
    z.array(
      fields({
        pool: z.enum(pools),
        workers: z.int(),
        running: z.int(),
        free: z.int(),
        waiting: z.int().describe("Calls whose callers wait"),
        oldest_wait_seconds: z.number(),
        jobs_waiting: z.int().describe("Jobs, for which nobody waits"),
        oldest_job_wait_seconds: z.number(),
      }),
    ),
  ),
  workers: orNull(z.int()),
  catalog_differs: z.boolean().describe("A worker has a different catalog than this API instance"),
  upstreams: z.array(fields({ id: z.string(), state, last_failure: lastFailure })),
  stores: z.array(fields({ name: z.enum(["mongodb", "redis", "s3"]), ok: z.boolean(), ping_ms: orNull(z.number()) })),
  money: orNull(fields({ holds: open, leases: open, undecided: z.int() })).describe(
    "null: no maintenance worker has counted in the last two minutes",
  ),
  ledger: orNull(fields({ faults: z.int(), difference_usd: usd, checked_at: unixSecondsOfMs })).describe(
    "The last complete check by a maintenance worker",
  ),
  owed: orNull(fields({ owed_usd: usd, payments: z.int() })),
}).meta({ id: "Overview", description: "Fields that cannot be read are null" });

export const overviewRoutes = [
  route({
    method: "get",
    path: "/overview",
    operationId: "getOverview",
    summary: "The state of the whole service; cheap enough to poll every second",
    query: {},
    answers: { 200: "The overview" },
    answer: overview,
    handle: ({ overview }) => overview(),
  }),
];
