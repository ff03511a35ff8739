import { z } from "zod";
import type { Keys } from "#keys";
import { type Account, formatUsd, type Money } from "#money";
import { mint, name, pageQuery, parse } from "../../http/input.ts";
import { found, type Handler, renderPage, unixSeconds } from "./render.ts";

const tier = z.enum(["standard", "elite"]);

const newAccount = z.strictObject({ name, tier: tier.optional(), buyback_token: mint.nullable().optional() });
const accountPatch = z.strictObject({
  name: name.optional(),
  tier: tier.optional(),
  frozen: z.boolean().optional(),
  buyback_token: mint.nullable().optional(),
});

const render = (account: Account) => ({
  id: account.id,
  object: "account",
  name: account.name,
  tier: account.tier,
  frozen: account.frozen,
  buyback_token: account.buybackToken,
  available_usd: formatUsd(account.availableNanoUsd),
  held_usd: formatUsd(account.heldNanoUsd),
  open_holds: account.openHolds,
  created_at: unixSeconds(account.createdAt),
});

export function accountHandlers({ money, keys }: { money: Money; keys: Keys }) {
  return {
    create: async (req, res) => {
      const { buyback_token: buybackToken, ...rest } = parse(newAccount, req.body);
      const account = await money.createAccount({ ...rest, buybackToken });
      res.status(201);
      return render(account);
    },
    list: (req) => renderPage(parse(pageQuery, req.query), (page) => money.accounts(page), render),
    get: async (req) => render(found(await money.account(req.params.id), "account")),
    update: async (req) => {
      const { buyback_token: buybackToken, ...rest } = parse(accountPatch, req.body);
      const account = await money.updateAccount(req.params.id, { ...rest, buybackToken });
      await keys.epochChanged();
      return render(account);
    },
  } satisfies Record<string, Handler>;
}
