import { z } from "zod";
import { billingOf, type Account as MoneyAccount } from "#money";
import { fields, inputFields, orNull, positiveUsd, tag, unixSeconds, usd } from "../../http/fields.ts";
import { found } from "../../http/page.ts";
import { route } from "./route.ts";

const alertFields = {
  alert_below_usd: orNull(usd).describe("Threshold of the balance alert"),
  alert: orNull(fields({ since: unixSeconds })).describe(
    "Time since which `available_usd` has been below the threshold; checked every 15 seconds",
  ),
};

const balance = fields({
  object: tag("balance"),
  balance_usd: usd.describe("Credits minus captured costs"),
  available_usd: usd.describe("Amount that is available for further calls"),
  held_usd: usd.describe("Amount that is held for running calls"),
  ...alertFields,
}).meta({ id: "Balance" });

const ownAccount = fields({
  id: z.string(),
  object: tag("account"),
  name: z.string(),
  tier: z.enum(["standard", "elite"]),
  frozen: z.boolean(),
  ...alertFields,
  billing: fields({ name: z.string(), address: orNull(z.string()), tax_id: orNull(z.string()) }).describe(
    "The customer on invoices; the name is that of the account unless it was set",
  ),
  created_at: unixSeconds,
}).meta({ id: "Account" });

const line = (max: number) => z.string().trim().min(1).max(max);
const patch = inputFields({
  alert_below_usd: positiveUsd.nullable().optional().describe("null removes the threshold"),
  billing: inputFields({
    name: line(200).optional(),
    address: line(500).optional().describe("May have several lines"),
    tax_id: line(100).optional(),
  })
    .nullable()
    .optional()
    .describe("Replaces the customer's details on invoices that have no number yet; null removes them"),
});

const shown = (account: MoneyAccount) => ({ ...account, alert: alertOf(account), billing: billingOf(account) });

const alertOf = ({ alertSince }: { readonly alertSince: Date | null }) => alertSince && { since: alertSince };

export const accountRoutes = [
  route({
    method: "get",
    path: "/v1/balance",
    operationId: "getBalance",
    summary: "The account's exact balance",
    answers: { 200: "The balance" },
    answer: balance,
    async handle({ money, leases }, { who: { account: id } }) {
      // Settle idle leases, which would show as held.
      await leases.settleIdle(id);
      const account = found(await money.account(id), "account");
      const balances = await money.balances([id]);
      const balanceNanoUsd = balances.get(id) ?? account.availableNanoUsd;
      return { ...account, balanceNanoUsd, alert: alertOf(account) };
    },
  }),
  route({
    method: "get",
    path: "/v1/account",
    operationId: "getAccount",
    summary: "The account and its settings (scope `manage`)",
    scope: "manage",
    answers: { 200: "The account" },
    answer: ownAccount,
    handle: async ({ money }, { who: { account } }) => shown(found(await money.account(account), "account")),
  }),
  route({
    method: "patch",
    path: "/v1/account",
    operationId: "updateAccount",
    summary: "Change the account's settings (scope `manage`)",
    scope: "manage",
    body: patch,
    examples: {
      alert: { summary: "An alert below 5 USD", value: { alert_below_usd: "5.00" } },
      billing: { summary: "The customer on invoices", value: { billing: { name: "Acme Ltd", tax_id: "GB123456789" } } },
    },
    answers: { 200: "The account" },
    answer: ownAccount,
    async handle({ money }, { who: { account }, body: { alertBelowNanoUsd, billing } }) {
      if (billing !== undefined) await money.setBilling(account, billing);
      return shown(await money.setAlert(account, alertBelowNanoUsd));
    },
  }),
];
