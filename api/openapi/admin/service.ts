import { z } from "zod";
import { pools } from "#jobs";
import { type Group, unixSeconds, usd } from "../operation.ts";
import { adminOperation, listOf, pageWith } from "./operation.ts";

const state = z.enum(["ready", "open", "no key"]).describe("`open`: the circuit breaker is");

const counts = {
  calls: z.int().describe("Answered and refused"),
  failed: z.int().describe("With a status of 500 or more"),
  refused: z.int().describe("With a status of 400 or more"),
  charged_usd: usd,
};
const count = z.object(counts).meta({ id: "TrafficCount" });
const point = z.object({ at: unixSeconds.describe("When it begins"), ...counts }).meta({ id: "TrafficPoint" });
const open = z.object({ open: z.int(), oldest_seconds: z.int() });

const overview = z
  .object({
    object: z.literal("overview"),
    at: unixSeconds,
    traffic: z
      .object({
        last_5_minutes: count,
        last_hour: count,
        last_day: count,
        minutes: z.array(point).describe("The last 60, oldest first"),
        hours: z.array(point).describe("The last 24, oldest first"),
      })
      .nullable()
      .describe("Of all processes, up to 5 s old; not the ledger"),
    pools: z
      .array(
        z.object({
          pool: z.enum(pools),
          workers: z.int(),
          running: z.int(),
          free: z.int(),
          waiting: z.int(),
          oldest_wait_seconds: z.number(),
        }),
      )
      .nullable(),
    workers: z.int().nullable(),
    catalog_differs: z.boolean().describe("A worker has another catalog than this API instance"),
    upstreams: z.array(z.object({ id: z.string(), state })),
    stores: z.array(
      z.object({ name: z.enum(["mongodb", "redis", "s3"]), ok: z.boolean(), ping_ms: z.number().nullable() }),
    ),
    money: z
      .object({ holds: open, leases: open, undecided: z.int() })
      .nullable()
      .describe("null: no maintenance worker has counted within two minutes"),
    ledger: z
      .object({ faults: z.int(), difference_usd: usd, checked_at: unixSeconds })
      .nullable()
      .describe("The last complete check by a maintenance worker"),
    owed: z.object({ owed_usd: usd, payments: z.int() }).nullable(),
  })
  .meta({ id: "Overview", description: "What cannot be read is null" });

const worker = z
  .object({
    id: z.string(),
    object: z.literal("worker"),
    version: z.string().nullable(),
    started_at: unixSeconds.nullable(),
    catalog: z.string(),
    same_catalog: z.boolean().describe("It has this API instance's catalog"),
    pools: z.record(z.string(), z.object({ free: z.int(), running: z.int() })),
    upstreams: z.record(z.string(), state),
  })
  .meta({ id: "Worker" });

const upstream = z
  .object({
    id: z.string(),
    object: z.literal("upstream"),
    provider: z.string(),
    state: state.describe("The best among the workers"),
    workers: z.object({ ready: z.int(), open: z.int(), no_key: z.int() }),
    models: z.array(z.string()),
    base_url: z.string().nullable(),
    concurrency: z.int().nullable().describe("Calls at once from one worker process"),
  })
  .meta({ id: "Upstream" });

const catalogModel = z
  .object({
    id: z.string(),
    object: z.literal("catalog_model"),
    name: z.string(),
    owned_by: z.string(),
    type: z.string(),
    endpoint: z.string(),
    listed: z.boolean().describe("Some worker has the key of one of its upstreams"),
    deprecated_at: unixSeconds.nullable(),
    elite_discount_bps: z.int(),
    pricing: z.record(z.string(), z.object({ unit: z.string(), list_usd: z.string(), elite_usd: z.string() })),
    upstreams: z
      .array(z.object({ id: z.string(), model: z.string().describe("Its name there"), state }))
      .describe("In the order in which they are tried"),
  })
  .meta({ id: "CatalogModel" });

const auditRecord = z
  .object({
    id: z.string(),
    object: z.literal("audit_record"),
    who: z.string().describe("The name of the operator's token"),
    action: z.string().meta({ example: "POST /accounts/{id}/credits" }),
    targets: z.array(z.string()).describe("Ids of what was changed or made, and of its account"),
    changes: z.record(z.string(), z.unknown()).nullable().describe("The request's body"),
    request_id: z.string(),
    created_at: unixSeconds,
    status: z.int().nullable().describe("null: not known; the change may be done or not"),
    code: z.string().nullable().describe("Of the error"),
  })
  .meta({ id: "AuditRecord" });

export const service: Group = {
  name: "Service",
  description: "How the service is doing, and who changed what",
  operations: {
    "GET /overview": adminOperation("getOverview", "The state of the whole service; cheap, for every second", {
      answers: { 200: ["The overview", overview] },
    }),
    "GET /workers": adminOperation("listWorkers", "Live worker processes", {
      answers: { 200: ["All of them", listOf("Worker", worker)] },
    }),
    "GET /upstreams": adminOperation("listUpstreams", "The catalog's upstreams, with their state", {
      answers: { 200: ["All of them", listOf("Upstream", upstream)] },
    }),
    "GET /catalog": adminOperation("listCatalog", "The catalog's models, with the state of their upstreams", {
      answers: { 200: ["All of them", listOf("CatalogModel", catalogModel)] },
    }),
    "GET /audit": adminOperation("listAuditRecords", "Changes by operators, newest first", {
      query: pageWith({
        who: z.string().optional(),
        action: z.string().optional(),
        target: z.string().optional().describe("An id that was changed or made, or its account's"),
        from: z.int().optional().describe("unix seconds"),
        to: z.int().optional().describe("unix seconds, not included"),
      }),
      answers: { 200: ["A page", listOf("AuditRecord", auditRecord)] },
    }),
  },
};
