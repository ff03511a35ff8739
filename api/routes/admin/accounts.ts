import { z } from "zod";
import { invalidValue } from "#errors";
import type { Account, Money } from "#money";
import type { Page } from "#platform/mongo/collection";
import { fields, inputFields, tag, unixSeconds, usd } from "../../http/fields.ts";
import { mint, name } from "../../http/input.ts";
import { defaultLimit, found, listOf, pageQuery, readPage, text, wholeList } from "../../http/page.ts";
import { type AdminDeps, idOf, route } from "./route.ts";

const tier = z.enum(["standard", "elite"]);

const account = fields({
  id: z.string(),
  object: tag("account"),
  name: z.string(),
  tier,
  frozen: z.boolean().describe("If true, the account's calls are refused"),
  buyback_token: z.string().nullable(),
  balance_usd: usd.describe("Credits minus captured costs"),
  available_usd: usd,
  held_usd: usd,
  open_holds: z.int().describe("Number of open holds and leases"),
  created_at: unixSeconds,
}).meta({ id: "AdminAccount" });

const newAccount = inputFields({ name, tier: tier.optional(), buyback_token: mint.nullable().optional() });
const accountPatch = inputFields({
  name: name.optional(),
  tier: tier.optional(),
  frozen: z.boolean().optional(),
  buyback_token: mint.nullable().optional(),
});

async function withBalances(money: Money, accounts: readonly Account[]) {
  const balances = await money.balances(accounts.map(({ id }) => id));
  return accounts.map((each) => ({ ...each, balanceNanoUsd: balances.get(each.id) ?? each.availableNanoUsd }));
}

async function withBalance(money: Money, account: Account) {
  const [shown] = await withBalances(money, [account]);
  return found(shown, "account");
}

const isId = (text: string) => /^(acct_|x402:)./.test(text);

/** Finds an account by its id, including accounts of payments. Any other text is the beginning of a name. */
async function search(money: Money, wanted: string | undefined, page: Page): Promise<readonly Account[]> {
  if (wanted === undefined) return money.accounts(page);
  const account = isId(wanted) ? await money.account(wanted) : undefined;
  return account ? [account] : money.searchAccounts(wanted, page);
}

/** Resolves the id or the whole name of an account, in any case, to its id. Throws 400 unless one account has the name. */
export async function accountIdOf(money: Money, wanted: string): Promise<string> {
  if (isId(wanted)) return wanted;
  const isNamed = ({ name: each }: Account) => each.localeCompare(wanted, "en", { sensitivity: "accent" }) === 0;
  const [account, another] = (await money.searchAccounts(wanted, { limit: 2 })).filter(isNamed);
  if (account && !another) return account.id;
  const count = account ? "several accounts are" : "no account is";
  throw invalidValue("account", `account: ${count} called '${wanted}'; use an id.`);
}

function checkToken({ payments: { buyback } }: Pick<AdminDeps, "payments">, token: string | null | undefined): void {
  if (token != null) buyback.assertEligible(token);
}

const params = idOf("The account's id");

export const ids = z.codec(z.string(), z.array(text).min(1).max(100), {
  decode: (given) => given.split(","),
  encode: (ids) => ids.join(","),
});

export const accountRoutes = [
  route({
    method: "get",
    path: "/accounts",
    operationId: "listAccounts",
    summary: "Accounts, newest first",
    query: {
      ...pageQuery,
      search: name.optional().describe("An account id, or the beginning of a name; results are then ordered by name"),
      sort: z
        .enum(["balance"])
        .optional()
        .describe("The largest balances first, in one page; default: newest first. Not with `search`"),
      ids: ids
        .optional()
        .describe(
          "Up to 100 ids separated by commas: these accounts, in place of a page. Idle leases may show as held",
        ),
    },
    answers: { 200: "A page" },
    answer: listOf(account).meta({ id: "AdminAccountList" }),
    async handle({ money, leases }, { query: { ids: wanted, sort, ...query } }) {
      if (wanted) return wholeList(await withBalances(money, await money.accountsOf(wanted)));
      // Settle idle leases, which would show as held.
      await leases.settleIdle();
      if (sort && query.search) throw invalidValue("sort", "sort: not with `search`, which orders by name.");
      if (sort) return wholeList(await withBalances(money, await money.richestAccounts(query.limit ?? defaultLimit)));
      return readPage(query, async (page) => withBalances(money, await search(money, query.search, page)));
    },
  }),
  route({
    method: "post",
    path: "/accounts",
    operationId: "createAccount",
    summary: "Create an account",
    body: newAccount,
    answers: { 201: "The account" },
    answer: account,
    async handle(deps, { body }) {
      checkToken(deps, body.buybackToken);
      return withBalance(deps.money, await deps.money.createAccount(body));
    },
  }),
  route({
    method: "get",
    path: "/accounts/{id}",
    operationId: "getAccount",
    summary: "One account with its balance",
    params,
    answers: { 200: "The account" },
    answer: account,
    async handle({ money, leases }, { params: { id } }) {
      await leases.settleIdle(id);
      return withBalance(money, found(await money.account(id), "account"));
    },
  }),
  route({
    method: "patch",
    path: "/accounts/{id}",
    operationId: "updateAccount",
    summary: "Rename, freeze, or change the tier",
    params,
    body: accountPatch,
    answers: { 200: "The account" },
    answer: account,
    async handle(deps, { params: { id }, body }) {
      checkToken(deps, body.buybackToken);
      const account = await deps.money.updateAccount(id, body);
      await deps.keys.epochChanged();
      return withBalance(deps.money, account);
    },
  }),
];
