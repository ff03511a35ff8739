import type { Keys } from "#keys";
import { formatUsd, type Money } from "#money";
import { pageQuery, parse } from "../../http/input.ts";
import { found, renderPage } from "../../http/json-routes.ts";
import { keyPatch, newKey, renderKey, renderListed, renderSpent, toPatch } from "../key-object.ts";
import type { AccountHandler } from "./handler.ts";

export function accountKeyHandlers({ keys, money }: { keys: Keys; money: Money }) {
  return {
    /** The caller's own. */
    own: async (_req, _res, caller) => {
      const { account: id, keyId } = caller;
      const [key, account, usage, budget] = await Promise.all([
        keys.get(id, keyId),
        money.account(id),
        money.usageOfKey(id, keyId),
        keys.budgetOf(caller),
      ]);
      const { name, tier, frozen } = found(account, "account");
      return {
        ...renderKey(key),
        account: { id, name, tier, frozen },
        budget: renderSpent(budget),
        usage: {
          day_usd: formatUsd(usage.dayNanoUsd),
          month_usd: formatUsd(usage.monthNanoUsd),
          total_usd: formatUsd(usage.totalNanoUsd),
        },
      };
    },
    create: async (req, res, caller) => {
      const { key, secret } = await keys.issue(caller.account, toPatch(parse(newKey, req.body)), caller);
      res.status(201);
      return { ...renderKey(key), key: secret };
    },
    list: async (req, _res, { account }) =>
      renderPage(parse(pageQuery, req.query), (page) => keys.list(account, page), renderListed),
    update: async (req, _res, caller) =>
      renderKey(await keys.update(req.params.id, toPatch(parse(keyPatch, req.body)), caller)),
    revoke: async (req, _res, caller) => renderKey(await keys.revoke(req.params.id, caller)),
  } satisfies Record<string, AccountHandler>;
}
