import { z } from "zod";
import { type KeyRecord, type Keys, scopes } from "#keys";
import type { Money } from "#money";
import { name, pageQuery, parse } from "../../http/input.ts";
import { found, type Handler, renderPage, unixSeconds } from "../../http/json-routes.ts";

const limit = z.int().positive().max(1e12);

const limits = z
  .strictObject({ requests_per_minute: limit, tokens_per_minute: limit, concurrent_requests: limit })
  .partial();
/** `null` removes an override. */
const limitsPatch = z
  .strictObject({
    requests_per_minute: limit.nullable(),
    tokens_per_minute: limit.nullable(),
    concurrent_requests: limit.nullable(),
  })
  .partial();

const scopeList = z.array(z.enum(scopes)).min(1);
export const newKey = z.strictObject({
  name: name.nullable().optional(),
  scopes: scopeList.optional(),
  limits: limits.optional(),
});
export const keyPatch = z.strictObject({
  name: name.nullable().optional(),
  scopes: scopeList.optional(),
  limits: limitsPatch.optional(),
});

const toPatch = ({ name, scopes, limits }: z.infer<typeof keyPatch>) => ({
  name,
  scopes,
  limits: limits && {
    requestsPerMinute: limits.requests_per_minute,
    tokensPerMinute: limits.tokens_per_minute,
    concurrentRequests: limits.concurrent_requests,
  },
});

/** Limits set on the key; `null` means the configured default. */
const render = (key: KeyRecord) => ({
  id: key.id,
  object: "key",
  account: key.account,
  name: key.name,
  prefix: key.prefix,
  scopes: key.scopes,
  limits: {
    requests_per_minute: key.limits.requestsPerMinute ?? null,
    tokens_per_minute: key.limits.tokensPerMinute ?? null,
    concurrent_requests: key.limits.concurrentRequests ?? null,
  },
  created_at: unixSeconds(key.createdAt),
  last_used_at: key.lastUsedAt && unixSeconds(key.lastUsedAt),
  revoked_at: key.revokedAt && unixSeconds(key.revokedAt),
});

export function keyHandlers({ keys, money }: { keys: Keys; money: Money }) {
  return {
    issue: async (req, res) => {
      const { key, secret } = await keys.issue(req.params.id, toPatch(parse(newKey, req.body)));
      res.status(201);
      return { ...render(key), key: secret };
    },
    list: async (req) => {
      const page = parse(pageQuery, req.query);
      const { id } = found(await money.account(req.params.id), "account");
      return renderPage(page, (more) => keys.list(id, more), render);
    },
    update: async (req) => render(await keys.update(req.params.id, toPatch(parse(keyPatch, req.body)))),
    revoke: async (req) => render(await keys.revoke(req.params.id)),
  } satisfies Record<string, Handler>;
}
