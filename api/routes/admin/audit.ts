import { z } from "zod";
import type { Audit, AuditRecord } from "#audit";
import { pageQuery, parse, wholeNumber } from "../../http/input.ts";
import { type Handler, renderPage, unixSeconds } from "../../http/json-routes.ts";

const seconds = wholeNumber.pipe(z.int().max(1e11)).transform((at) => new Date(at * 1_000));
const text = z.string().min(1).max(200);

const query = pageQuery.extend({
  who: text.optional(),
  action: text.optional(),
  target: text.optional(),
  from: seconds.optional(),
  to: seconds.optional(),
});

const render = ({ id, who, action, targets, changes, requestId, createdAt, status, code }: AuditRecord) => ({
  id,
  object: "audit_record",
  who,
  action,
  targets,
  changes,
  request_id: requestId,
  created_at: unixSeconds(createdAt),
  status,
  code,
});

export function auditHandlers({ audit }: { audit: Pick<Audit, "list"> }) {
  return {
    list: async (req) => {
      const { limit, after, ...filter } = parse(query, req.query);
      return renderPage({ limit, after }, (page) => audit.list({ ...filter, ...page }), render);
    },
  } satisfies Record<string, Handler>;
}
