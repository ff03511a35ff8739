import { z } from "zod";
import { fields, tag, unixSeconds } from "../../http/fields.ts";
import { timeSpan } from "../../http/input.ts";
import { listOf, pageQuery, readPage, text } from "../../http/page.ts";
import { route } from "./route.ts";

const auditRecord = fields({
  id: z.string(),
  object: tag("audit_record"),
  who: z.string().describe("The name of the operator's token"),
  action: z.string().meta({ example: "POST /accounts/{id}/credits" }),
  targets: z.array(z.string()).describe("Ids of the objects that were changed or created, and of their account"),
  changes: z.record(z.string(), z.unknown()).nullable().describe("The request body"),
  request_id: z.string(),
  created_at: unixSeconds,
  status: z.int().nullable().describe("null: unknown; the change may or may not have been made"),
  code: z.string().nullable().describe("The error code"),
}).meta({ id: "AuditRecord" });

export const auditRoutes = [
  route({
    method: "get",
    path: "/audit",
    operationId: "listAuditRecords",
    summary: "Changes by operators, newest first",
    query: {
      ...pageQuery,
      who: text.optional(),
      action: text.optional(),
      target: text.optional().describe("Id of an object that was changed or created, or of its account"),
      ...timeSpan,
    },
    answers: { 200: "A page" },
    answer: listOf(auditRecord).meta({ id: "AuditRecordList" }),
    handle: ({ audit }, { query: { limit, after, ...filter } }) =>
      readPage({ limit, after }, (page) => audit.list({ ...filter, ...page })),
  }),
];
