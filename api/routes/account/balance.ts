import { formatUsd, type Leases, type Money } from "#money";
import { found } from "../../http/json-routes.ts";
import { renderAlert } from "./account.ts";
import type { AccountHandler } from "./handler.ts";

export function balanceHandlers({ money, leases }: { money: Money; leases: Leases }) {
  return {
    get: async (_req, _res, { account: id }) => {
      // What no call needs is not to show as held.
      await leases.settleIdle(id);
      const account = found(await money.account(id), "account");
      const balances = await money.balances([id]);
      return {
        object: "balance",
        balance_usd: formatUsd(balances.get(id) ?? account.availableNanoUsd),
        available_usd: formatUsd(account.availableNanoUsd),
        held_usd: formatUsd(account.heldNanoUsd),
        ...renderAlert(account),
      };
    },
  } satisfies Record<string, AccountHandler>;
}
