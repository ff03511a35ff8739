import { Schema } from "mongoose";
import type { Tier } from "#catalog";
import { invalidValue, notFound } from "#errors";
import { newId } from "#platform/ids";
import { type DocumentOf, findPage, openCollection, type Page, scatter } from "#platform/mongo/collection";
import type { Uses } from "#platform/uses";

export type AccountPatch = {
  readonly [Field in "name" | "tier" | "frozen" | "buybackToken"]?: Account[Field] | undefined;
};

const tiers = ["standard", "elite"] as const satisfies readonly Tier[];
const hold = {
  amount: { type: BigInt, required: true },
  heldAt: { type: Date, required: true },
  /** The sweeper checks the hold from this time on. */
  expiresAt: { type: Date, required: true },
  /** The API key of the call. */
  key: { type: String },
  /** The API instance that admitted the call. */
  instance: { type: String },
  /** Set if the call does not share its job with others: the job's id is the request id. */
  ownJob: { type: Boolean },
  /** Set for a lease: no hold of its calls expires later. */
  callsEndAt: { type: Date },
  /** Set for a lease: the amount that its last growth took. */
  granted: { type: BigInt },
} as const;
/** Cast to its definition, because that is cheaper to infer from. */
const holdSchema = new Schema(hold, { _id: false, strict: "throw" }) as unknown as typeof hold;
const definition = {
  _id: { type: String, required: true },
  name: { type: String, required: true },
  tier: { type: String, enum: tiers, required: true },
  frozen: { type: Boolean, required: true },
  buybackToken: { type: String },
  available: { type: BigInt, required: true },
  held: { type: BigInt, required: true },
  /** Keyed by request id, or by the id of a lease. */
  holds: { type: Map, of: holdSchema, required: true },
  /** The size of `holds`, which MongoDB cannot compare in a filter. */
  openHolds: { type: Number, required: true },
  /** No open hold expires before this time. A hold lowers it, and the sweeper raises it once it has passed. */
  holdsExpireAt: { type: Date },
  /** The owner is alerted when `available` falls below it. */
  alertBelow: { type: BigInt },
  /** The time since which `available` has been below the threshold. */
  alertSince: { type: Date },
  /** The `alertSince` whose event is recorded. */
  alertRecorded: { type: Date },
  /** The customer's own details, for invoices. */
  billing: {
    type: { name: { type: String }, address: { type: String }, taxId: { type: String } },
    _id: false,
  },
  createdAt: { type: Date, required: true },
} as const;
/** The filter of the sweeper's index, which contains only accounts with open holds. */
export const withOpenHolds = { openHolds: { $gt: 0 } };

/** The index of names excludes payment accounts and ignores case. */
export const named = { _id: { $gte: "acct_", $lt: "acct`" } };
export const nameCollation = { locale: "en", strength: 2 };

export type StoredAccount = DocumentOf<typeof definition>;
export type StoredHold = StoredAccount["holds"][string];

export type Account = ReturnType<typeof toAccount>;

/** How an invoice names the customer. */
export interface BillingDetails {
  readonly name: string;
  readonly address?: string | undefined;
  readonly taxId?: string | undefined;
}

type NewBilling = { readonly [Field in keyof BillingDetails]?: BillingDetails[Field] | undefined };

/** The name of the account stands for that of the customer. */
export const billingOf = ({ name, billing }: Pick<Account, "name" | "billing">): BillingDetails => ({
  name: billing?.name ?? name,
  address: billing?.address ?? undefined,
  taxId: billing?.taxId ?? undefined,
});

export const toAccount = (stored: Omit<StoredAccount, "holds">) => ({
  id: stored._id,
  name: stored.name,
  tier: stored.tier,
  frozen: stored.frozen,
  /** The mint that the account's calls buy back; null selects the service's own. */
  buybackToken: stored.buybackToken ?? null,
  availableNanoUsd: stored.available,
  heldNanoUsd: stored.held,
  openHolds: stored.openHolds,
  alertBelowNanoUsd: stored.alertBelow ?? null,
  alertSince: stored.alertSince ?? null,
  billing: stored.billing,
  createdAt: stored.createdAt,
});

export type Accounts = ReturnType<typeof createAccounts>;

/** The collection `accounts`. The operations of every call use `collection`, which does not cast. */
export function createAccounts({ mongo, clock }: Uses<"mongo" | "clock">) {
  const { model, collection } = openCollection<StoredAccount>(mongo, "accounts", definition);
  // Holds are excluded, because an account may have thousands.
  const summary = { holds: 0 } as const;

  async function find(id: string): Promise<Account | undefined> {
    const stored = await model.findById(id, summary).lean();
    return stored ? toAccount(stored) : undefined;
  }

  /** Returns the fields of a newly opened account, except its id and balance. */
  const opened = ({ name, tier = "standard", buybackToken }: AccountPatch & { readonly name: string }) => ({
    name,
    tier,
    frozen: false,
    held: 0n,
    openHolds: 0,
    holds: {},
    createdAt: new Date(clock.now()),
    ...(buybackToken != null && { buybackToken }),
  });

  async function create(fields: Parameters<typeof opened>[0]): Promise<Account> {
    const account = { ...opened(fields), _id: newId("acct"), available: 0n };
    await model.create(account);
    return toAccount(account);
  }

  async function findSeveral(ids: readonly string[]): Promise<Account[]> {
    const found = collection.find({ _id: { $in: [...ids] } }, { projection: summary, ...scatter("operator") });
    return (await found.toArray()).map(toAccount);
  }

  /** Newest first, without payment accounts. Throws 400 for an unknown `after`. */
  async function list(page: Page): Promise<Account[]> {
    const unknown = "there is no account";
    const filter = { _id: /^acct_/ };
    const found = await findPage(collection, page, { unknown, filter, projection: summary, ...scatter("operator") });
    return found.map(toAccount);
  }

  /** Lists accounts by name whose name begins with the prefix, in any case. Throws 400 for an unknown `after`. */
  async function search(prefix: string, { limit, after }: Page): Promise<Account[]> {
    const last = after === undefined ? undefined : await find(after);
    if (after !== undefined && !last) throw invalidValue("after", `after: there is no account '${after}'.`);
    const begins = { name: { $gte: prefix, $lt: `${prefix}\uffff` } };
    const later = last && { $or: [{ name: { $gt: last.name } }, { name: last.name, _id: { $gt: last.id } }] };
    const found = collection.find(
      { ...named, ...(later ? { $and: [begins, later] } : begins) },
      { projection: summary, sort: { name: 1, _id: 1 }, collation: nameCollation, limit, ...scatter("operator") },
    );
    return (await found.toArray()).map(toAccount);
  }

  /** The accounts with the most money, available or held. Reads all, because an index of it would slow down each hold. */
  async function richest(limit: number): Promise<Account[]> {
    const found = collection.aggregate<StoredAccount>(
      [
        { $match: named },
        { $project: { holds: 0 } },
        { $set: { sum: { $add: ["$available", "$held"] } } },
        { $sort: { sum: -1, _id: 1 } },
        { $limit: limit },
      ],
      { maxTimeMS: 5_000, ...scatter("operator") },
    );
    return (await found.toArray()).map(toAccount);
  }

  const holdsOf = (ids: readonly string[]) =>
    collection.find({ _id: { $in: [...ids] } }, { projection: { available: 1, held: 1, holds: 1 } }).toArray();

  async function update(id: string, { name, tier, frozen, buybackToken }: AccountPatch): Promise<Account> {
    const given = Object.entries({ name, tier, frozen, buybackToken }).filter(([, value]) => value !== undefined);
    const options = { returnDocument: "after", runValidators: true, projection: summary } as const;
    const stored = await model.findOneAndUpdate({ _id: id }, { $set: Object.fromEntries(given) }, options).lean();
    if (!stored) throw notFound("account");
    return toAccount(stored);
  }

  /** Replaces what invoices say of the customer. Null removes it. */
  async function setBilling(id: string, details: NewBilling | null): Promise<Account> {
    const update = details === null ? { $unset: { billing: "" } } : { $set: { billing: details } };
    const options = { returnDocument: "after", projection: summary, ignoreUndefined: true } as const;
    const stored = await collection.findOneAndUpdate({ _id: id }, update as object, options);
    if (!stored) throw notFound("account");
    return toAccount(stored);
  }

  return { model, collection, opened, create, setBilling, find, findSeveral, list, search, richest, holdsOf, update };
}
