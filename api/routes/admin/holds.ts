import { formatUsd, type Leases, type ListedHold, type Money } from "#money";
import { pageQuery, parse } from "../../http/input.ts";
import { type Handler, renderPage, unixSeconds } from "../../http/json-routes.ts";

const render = ({ hold, account, isLease, nanoUsd, heldAt, expiresAt }: ListedHold) => ({
  id: hold,
  object: isLease ? "lease" : "hold",
  account,
  amount_usd: formatUsd(nanoUsd),
  held_at: unixSeconds(heldAt),
  expires_at: unixSeconds(expiresAt),
});

/** What is held for calls that run: a hold is of one call, a lease of many. */
export function holdHandlers({ money, leases }: { money: Money; leases: Leases }) {
  return {
    /** Oldest first, unlike other lists. */
    list: async (req) => {
      const page = parse(pageQuery, req.query);
      await leases.settleIdle();
      return renderPage(page, money.listHolds, render);
    },
  } satisfies Record<string, Handler>;
}
