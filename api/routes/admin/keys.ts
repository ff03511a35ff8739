import type { Keys } from "#keys";
import type { Money } from "#money";
import { pageQuery, parse } from "../../http/input.ts";
import { found, type Handler, renderPage } from "../../http/json-routes.ts";
import { keyPatch, newKey, renderKey, renderListed, toPatch } from "../key-object.ts";

export function keyHandlers({ keys, money }: { keys: Keys; money: Money }) {
  return {
    issue: async (req, res) => {
      const { key, secret } = await keys.issue(req.params.id, toPatch(parse(newKey, req.body)));
      res.status(201);
      return { ...renderKey(key), key: secret };
    },
    list: async (req) => {
      const page = parse(pageQuery, req.query);
      const { id } = found(await money.account(req.params.id), "account");
      return renderPage(page, (more) => keys.list(id, more), renderListed);
    },
    update: async (req) => renderKey(await keys.update(req.params.id, toPatch(parse(keyPatch, req.body)))),
    revoke: async (req) => renderKey(await keys.revoke(req.params.id)),
  } satisfies Record<string, Handler>;
}
