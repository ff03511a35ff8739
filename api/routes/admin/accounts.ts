import { z } from "zod";
import type { Keys } from "#keys";
import { type Account, formatUsd, type Leases, type Money, type Page } from "#money";
import type { Payments } from "#payments";
import { mint, name, pageQuery, parse } from "../../http/input.ts";
import { found, type Handler, renderPage, unixSeconds } from "../../http/json-routes.ts";

const tier = z.enum(["standard", "elite"]);

export const newAccount = z.strictObject({ name, tier: tier.optional(), buyback_token: mint.nullable().optional() });
export const accountPatch = z.strictObject({
  name: name.optional(),
  tier: tier.optional(),
  frozen: z.boolean().optional(),
  buyback_token: mint.nullable().optional(),
});

const listQuery = pageQuery.extend({ search: name.optional() });

type Shown = Account & { readonly balanceNanoUsd: bigint };

const render = (account: Shown) => ({
  id: account.id,
  object: "account",
  name: account.name,
  tier: account.tier,
  frozen: account.frozen,
  buyback_token: account.buybackToken,
  balance_usd: formatUsd(account.balanceNanoUsd),
  available_usd: formatUsd(account.availableNanoUsd),
  held_usd: formatUsd(account.heldNanoUsd),
  open_holds: account.openHolds,
  created_at: unixSeconds(account.createdAt),
});

interface AccountDeps {
  readonly money: Money;
  readonly leases: Leases;
  readonly keys: Keys;
  readonly payments: Pick<Payments, "buyback">;
}

export function accountHandlers({ money, leases, keys, payments: { buyback } }: AccountDeps) {
  async function withBalances(accounts: readonly Account[]): Promise<Shown[]> {
    const balances = await money.balances(accounts.map(({ id }) => id));
    return accounts.map((each) => ({ ...each, balanceNanoUsd: balances.get(each.id) ?? each.availableNanoUsd }));
  }
  /** An id finds its account, also one of a payment; anything else is the beginning of a name. */
  async function read(search: string | undefined, page: Page): Promise<readonly Account[]> {
    if (search === undefined) return money.accounts(page);
    const account = /^(acct_|x402:)./.test(search) ? await money.account(search) : undefined;
    return account ? [account] : money.searchAccounts(search, page);
  }
  const show = async (account: Account) => render((await withBalances([account]))[0] as Shown);

  return {
    create: async (req, res) => {
      const { buyback_token: buybackToken, ...rest } = parse(newAccount, req.body);
      if (buybackToken != null) buyback.assertEligible(buybackToken);
      const account = await money.createAccount({ ...rest, buybackToken });
      res.status(201);
      return show(account);
    },
    list: async (req) => {
      const { search, ...query } = parse(listQuery, req.query);
      // What no call needs is not to show as held.
      await leases.settleIdle();
      return renderPage(query, async (page) => withBalances(await read(search, page)), render);
    },
    get: async (req) => {
      await leases.settleIdle(req.params.id);
      return show(found(await money.account(req.params.id), "account"));
    },
    update: async (req) => {
      const { buyback_token: buybackToken, ...rest } = parse(accountPatch, req.body);
      if (buybackToken != null) buyback.assertEligible(buybackToken);
      const account = await money.updateAccount(req.params.id, { ...rest, buybackToken });
      await keys.epochChanged();
      return show(account);
    },
  } satisfies Record<string, Handler>;
}
