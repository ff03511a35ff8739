import { z } from "zod";
import { invalidValue } from "#errors";
import { daysLater, formatUsd, type StatementLine, type UsageRow } from "#money";
import { csvOf, wantsCsv } from "../../http/csv.ts";
import { fields, orNull, tag, unixSeconds, usd } from "../../http/fields.ts";
import { route } from "./route.ts";
import { counts, day, numbersOf, spanOf } from "./usage.ts";

/** More credits in one statement are a 400. */
const maxCredits = 10_000;

const statementLine = fields({
  day,
  kind: z
    .enum(["credit", "adjustment", "payout", "refunds", "charges"])
    .describe(
      "`credit`: a top-up, or a credit by the operator; `adjustment`: taken back by the operator; `payout`: paid back on chain; `refunds` and `charges`: the sums of the day",
    ),
  amount_usd: usd.describe("Negative if it lowers the balance"),
  balance_usd: usd.describe("The balance after this line"),
  calls: orNull(z.int()).describe("Of `refunds` and `charges`: the calls and uploads that ended, or were refunded"),
  id: orNull(z.string()).describe("Of credits, adjustments and payouts: the id of the entry"),
  created_at: orNull(unixSeconds),
  reason: orNull(z.string()).describe("What the operator said"),
  transaction: orNull(z.string()).describe("The signature of the transaction on Solana"),
});
const statement = fields({
  object: tag("statement"),
  from: day,
  to: day,
  opening_usd: usd.describe("The balance at the beginning of `from`"),
  closing_usd: usd.describe("The balance at the end of `to`, or now. What calls hold is not taken off"),
  lines: z.array(statementLine).describe("By day: credits one by one, then the refunds of the day, then its charges"),
}).meta({ id: "Statement" });

const party = orNull(z.string());
const invoice = fields({
  object: tag("invoice"),
  month: z.string().meta({ example: "2026-11" }),
  status: z.enum(["open", "final"]).describe("`open` until the month is over and its sums cannot change any more"),
  number: orNull(z.string()).describe(
    "Null while it is `open`, without charges, and if the operator has not named itself",
  ),
  issued_at: orNull(unixSeconds),
  period: fields({ from: day, to: day }).describe("Days in UTC, both inclusive"),
  issuer: party.describe("The operator, in lines; null if it has not named itself"),
  customer: fields({ name: z.string(), address: party, tax_id: party }).describe(
    "As `billing` of the account was when the number was assigned",
  ),
  lines: z.array(fields({ day, model: orNull(z.string()), ...counts })),
  total_usd: usd,
}).meta({ id: "Invoice" });

const month = z.string().regex(/^[1-9]\d{3}-(0[1-9]|1[0-2])$/, "must be a month, like 2026-11");

/** The columns of a statement as CSV. */
const columns = ["day", "kind", "amount_usd", "balance_usd", "calls", "id", "reason", "transaction"] as const;

const statementCsv = (lines: readonly StatementLine[]): string =>
  csvOf(
    columns,
    lines.map(({ day, kind, amountNanoUsd, balanceNanoUsd, calls, id, reason, transaction }) => [
      day,
      kind,
      amountNanoUsd,
      balanceNanoUsd,
      calls,
      id,
      reason,
      transaction,
    ]),
  );

function invoiceCsv(rows: readonly UsageRow[], totalNanoUsd: bigint): string {
  const lines = rows.map((row) => [row.day, row.model, ...numbersOf(row)]);
  const total = `"total",,,,,,,${formatUsd(totalNanoUsd)}\r\n`;
  return csvOf(["day", "model", ...Object.keys(counts)], lines) + total;
}

const dayInput = z.iso.date().optional().meta({ example: "2026-11-01" });

export const statementRoutes = [
  route({
    method: "get",
    path: "/v1/statement",
    operationId: "getStatement",
    summary:
      "The balance from day to day: credits, refunds and charges, as JSON or CSV depending on `Accept` (scope `manage`)",
    description:
      "Each line is exact and says the balance after it. Charges are at most about a minute old; those of one call are in `GET /v1/requests`.",
    scope: "manage",
    query: {
      from: dayInput.describe("The first day, in UTC; default: 30 days before the end of `to`"),
      to: dayInput.describe("The last day; default: today. At most 366 days"),
    },
    answers: { 200: "The statement" },
    answer: statement,
    otherTypes: { "text/csv": { schema: z.string() } },
    async handle({ money, clock }, { who: { account }, query, req, res }) {
      const period = spanOf(clock.now(), { ...query, groupBy: ["day"], previous: false });
      const { isCut, lines, ...balances } = await money.statement(account, { ...period, limit: maxCredits });
      if (isCut) throw invalidValue("from", `from: there are more than ${maxCredits} credits; ask for fewer days.`);
      if (wantsCsv(req, res, `statement-${period.from}-${period.to}`)) return statementCsv(lines);
      return { ...period, ...balances, lines };
    },
  }),
  route({
    method: "get",
    path: "/v1/invoices",
    operationId: "getInvoice",
    summary: "The invoice of a month, by day and model, as JSON or CSV depending on `Accept` (scope `manage`)",
    description:
      "Charges less refunds. Number and parties are recorded when a final invoice of an operator who has named itself is first read, and stay.",
    scope: "manage",
    query: { month: month.meta({ example: "2026-11" }) },
    answers: { 200: "The invoice" },
    answer: invoice,
    otherTypes: { "text/csv": { schema: z.string() } },
    async handle({ money, invoiceIssuer }, { who: { account }, query: { month }, req, res }) {
      const from = `${month}-01`;
      const to = daysLater(`${daysLater(from, 31).slice(0, 7)}-01`, -1);
      const period = { from, to };
      const { lines, isFinal, ...invoice } = await money.invoice(account, period, invoiceIssuer);
      const totalNanoUsd = lines.reduce((sum, { costNanoUsd }) => sum + costNanoUsd, 0n);
      if (wantsCsv(req, res, `invoice-${invoice.number ?? month}`)) return invoiceCsv(lines, totalNanoUsd);
      const status = isFinal ? ("final" as const) : ("open" as const);
      const shown = lines.map((row) => ({ ...row, day: row.day ?? "" }));
      return { ...invoice, month, status, period, lines: shown, totalNanoUsd };
    },
  }),
];
