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
  targets: z.array(z.string()).describe("Ids of what was changed or made, and of its account"),
  changes: z.record(z.string(), z.unknown()).nullable().describe("The request's body"),
  request_id: z.string(),
  created_at: unixSeconds,
  status: z.int().nullable().describe("null: not known; the change may be done or not"),
  code: z.string().nullable().describe("Of the error"),
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
      target: text.optional().describe("An id that was changed or made, or its account's"),
      ...timeSpan,
    },
    answers: { 200: "A page" },
    answer: listOf(auditRecord).meta({ id: "AuditRecordList" }),
    handle: ({ audit }, { query: { limit, after, ...filter } }) =>
      readPage({ limit, after }, async (page) =>
        (await audit.list({ ...filter, ...page })).map((each) => ({
          ...each,
          changes: each.changes as Record<string, unknown> | null,
        })),
      ),
  }),
];
