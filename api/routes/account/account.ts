import { z } from "zod";
import { type Account, formatUsd, type Money } from "#money";
import { parse, usd } from "../../http/input.ts";
import { unixSeconds } from "../../http/json-routes.ts";
import type { AccountHandler } from "./handler.ts";

const patch = z.strictObject({
  alert_below_usd: usd
    .refine((nanoUsd) => nanoUsd > 0n, "must be more than 0")
    .nullable()
    .optional(),
});

/** Of an account and its balance. */
export const renderAlert = ({ alertBelowNanoUsd, alertSince }: Account) => ({
  alert_below_usd: alertBelowNanoUsd === null ? null : formatUsd(alertBelowNanoUsd),
  alert: alertSince && { since: unixSeconds(alertSince) },
});

export function ownAccountHandlers({ money }: { money: Money }) {
  return {
    update: async (req, _res, caller) => {
      const { alert_below_usd: alertBelowNanoUsd } = parse(patch, req.body);
      const account = await money.setAlert(caller.account, alertBelowNanoUsd);
      const { id, name, tier, frozen, createdAt } = account;
      return {
        id,
        object: "account",
        name,
        tier,
        frozen,
        ...renderAlert(account),
        created_at: unixSeconds(createdAt),
      };
    },
  } satisfies Record<string, AccountHandler>;
}
