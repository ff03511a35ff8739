import { notFound } from "#errors";
import { dayMs } from "#platform/clock";
import { type DocumentOf, openCollection } from "#platform/mongo/collection";
import { type BillingDetails, billingOf } from "./accounts.ts";
import type { MoneyDeps } from "./deps.ts";
import { accountIndex } from "./ledger.ts";
import { dayOf, daysLater, startOf } from "./usage/dates.ts";
import type { UsageQuery, UsageRow } from "./usage/views.ts";

const party = { type: String } as const;
const definition = {
  /** The number. */
  _id: { type: String, required: true },
  account: { type: String, required: true },
  /** The parties as they were when the number was assigned. */
  issuer: { ...party, required: true },
  name: { ...party, required: true },
  address: party,
  taxId: party,
  createdAt: { type: Date, required: true },
} as const;
type StoredInvoice = DocumentOf<typeof definition>;

export interface Invoice extends Parties {
  /** The month's sums cannot change any more. */
  readonly isFinal: boolean;
  /** By day and model. */
  readonly lines: readonly UsageRow[];
}

interface Parties {
  /** Undefined until the invoice is final, without charges, and without an issuer. */
  readonly number: string | undefined;
  readonly issuedAt: Date | undefined;
  /** The operator, in lines. Undefined if it has not named itself. */
  readonly issuer: string | undefined;
  readonly customer: BillingDetails;
}

interface Month {
  /** UTC days, both inclusive. */
  readonly from: string;
  readonly to: string;
}

interface Deps extends MoneyDeps {
  readonly lastClosedDay: () => Promise<string>;
  readonly usage: (account: string, query: UsageQuery) => Promise<readonly UsageRow[]>;
}

/** Far above 31 days of all models. */
const maxLines = 100_000;

/** An account has one invoice a month, so the month and the account's id make its number. */
const numberOf = (account: string, { from }: Month) => `${from.slice(0, 7).replace("-", "")}-${account.slice(-12)}`;

/**
 * The collection `invoices`: number and parties of the invoices of past months. They are recorded when somebody first reads
 * an invoice whose sums are final, if there are any and the operator has named itself by then, and do not change afterwards.
 */
export function createInvoices({ mongo, accounts, ledger, clock, lastClosedDay, usage }: Deps) {
  const { collection } = openCollection<StoredInvoice>(mongo, "invoices", definition);

  /** A day is closed only if it has entries, so what comes after the last closed day may be final without that. */
  async function isFinal(account: string, { to }: Month): Promise<boolean> {
    if (dayOf(clock.now()) <= daysLater(to, 1)) return false;
    const closed = await lastClosedDay();
    if (closed >= to) return true;
    const open = { $gte: new Date(closed ? startOf(daysLater(closed, 1)) : 0), $lt: new Date(startOf(to) + dayMs) };
    const charged = { account, createdAt: open, kind: { $in: ["usage", "storage", "refund"] } } as object;
    return (await ledger.collection.findOne(charged, { hint: accountIndex })) === null;
  }

  /** Records the parties if the invoice may get its number. */
  async function partiesOf(
    account: string,
    month: Month,
    issuer: string | undefined,
    mayIssue: boolean,
  ): Promise<Parties> {
    const owner = await accounts.find(account);
    if (!owner) throw notFound("account");
    const customer = billingOf(owner);
    if (!mayIssue || issuer === undefined) return { number: undefined, issuedAt: undefined, issuer, customer };
    const parties = { account, ...customer, issuer, createdAt: new Date(clock.now()) } as Omit<StoredInvoice, "_id">;
    const _id = numberOf(account, month);
    const options = { upsert: true, returnDocument: "after", ignoreUndefined: true } as const;
    const made = await collection.findOneAndUpdate({ _id }, { $setOnInsert: parties }, options);
    if (!made) throw new Error(`the invoice ${_id} could not be recorded`);
    return shown(made);
  }

  return async (account: string, month: Month, issuer: string | undefined): Promise<Invoice> => {
    const recorded = await collection.findOne({ _id: numberOf(account, month) });
    // Decided before the sums are read.
    const final = recorded !== null || (await isFinal(account, month));
    const lines = await usage(account, { ...month, groupBy: ["day", "model"], limit: maxLines });
    const mayIssue = final && lines.length > 0;
    const parties = recorded ? shown(recorded) : await partiesOf(account, month, issuer, mayIssue);
    return { ...parties, isFinal: final, lines };
  };
}

const shown = ({ _id: number, createdAt: issuedAt, issuer, ...customer }: StoredInvoice): Parties => ({
  number,
  issuedAt,
  issuer,
  customer,
});
