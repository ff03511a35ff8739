import type { PaymentRequirements } from "@x402/core/types";
import { type mongo as driver, Schema } from "mongoose";
import { noCapacity } from "#errors";
import { unitNanoUsd } from "#money";
import { randomBase62 } from "#platform/ids";
import { type DocumentOf, openCollection } from "#platform/mongo/collection";
import { isDuplicate } from "#platform/mongo/connection";
import type { Uses } from "#platform/uses";

const states = ["open", "settling", "unknown", "settled"] as const;

const definition = {
  /** The memo that the payment carries on chain. */
  _id: { type: String, required: true },
  state: { type: String, enum: states, required: true },
  requestHash: { type: String, required: true },
  /** The requirements that the payer received. */
  requirements: { type: Schema.Types.Mixed, required: true },
  buybackToken: { type: String },
  createdAt: { type: Date, required: true },
  /** Set for an open quote. */
  expiresAt: { type: Date },
  /** The id of the claim. Set in state `settling`. */
  claim: { type: String },
  /** The payment that claimed the quote. */
  messageHash: { type: String },
  blockhash: { type: String },
  payer: { type: String },
  /** Written before the transaction is sent. */
  signature: { type: String },
  /** While the outcome is unknown: the time of the next look-up, and the height after which the payment cannot land. */
  lookAt: { type: Date },
  overAtHeight: { type: BigInt },
  settledAt: { type: Date },
  /** Set once the rest was paid back, after which the payment pays for nothing more. */
  paidBackAt: { type: Date },
} as const;

export type Quote = DocumentOf<typeof definition, { requirements: PaymentRequirements }>;
/** A quote that a payment has claimed. */
export type ClaimedQuote = Quote & ClaimingPayment;
type ClaimingPayment = Readonly<Record<"messageHash" | "blockhash" | "payer", string>>;

export const isClaimed = (quote: Quote): quote is ClaimedQuote =>
  quote.messageHash !== undefined && quote.blockhash !== undefined && quote.payer !== undefined;

const memoLength = 24;
/** Operators type it on command lines, so it must not look like an option. */
export const newMemo = () => randomBase62(memoLength);
export const isQuoteMemo = (text: string): boolean => text.length === memoLength && /^[0-9A-Za-z]+$/.test(text);

/** If a claim has not ended within this time, the next process that looks it up resolves it from the chain. */
const claimMs = 60_000;

/** The fields that are removed when a quote opens again. */
const claimFields = {
  claim: "",
  messageHash: "",
  blockhash: "",
  payer: "",
  signature: "",
  lookAt: "",
  overAtHeight: "",
} as const;

export type Quotes = ReturnType<typeof createQuotes>;

function unavailable(error: unknown): never {
  throw isDuplicate(error)
    ? error
    : noCapacity("Quotes are unavailable right now. Repeat the request as it is.", 1, error);
}

const stored = <T>(operation: Promise<T>): Promise<T> => operation.catch(unavailable);

/** Converts a price to units of USDC, rounded up. */
export const unitsOf = (priceNanoUsd: bigint): bigint => (priceNanoUsd + unitNanoUsd - 1n) / unitNanoUsd;

export const amountNanoUsd = ({ requirements }: Quote): bigint => BigInt(requirements.amount) * unitNanoUsd;

/** The collection `quotes`. Every change is a compare-and-set. Throws 503 while MongoDB is unavailable. */
export function createQuotes({ mongo, quoteMs, clock }: Uses<"mongo" | "clock"> & { quoteMs: number }) {
  const { model, collection } = openCollection<Quote>(mongo, "quotes", definition);

  const after = (ms: number) => new Date(clock.now() + ms);

  const opening = () => ({ $set: { state: "open", expiresAt: after(quoteMs) }, $unset: claimFields }) as const;

  async function change(filter: driver.Filter<Quote>, update: driver.UpdateFilter<Quote>): Promise<boolean> {
    const { matchedCount } = await stored(collection.updateOne(filter, update));
    return matchedCount === 1;
  }

  return {
    async open(quote: Pick<Quote, "_id" | "requestHash" | "requirements" | "buybackToken">): Promise<void> {
      const document = { ...quote, state: "open" as const, createdAt: after(0), expiresAt: after(quoteMs) };
      await stored(model.create(document));
    },

    find: async (memo: string): Promise<Quote | undefined> =>
      (await stored(collection.findOne({ _id: memo }))) ?? undefined,

    async findAll(memos: readonly string[]): Promise<Map<string, Quote>> {
      const found = await stored(collection.find({ _id: { $in: [...memos] } }).toArray());
      return new Map(found.map((quote) => [quote._id, quote]));
    },

    /** Returns "used" if the payment has claimed another quote. */
    async claim(memo: string, id: string, { messageHash, blockhash, payer }: ClaimingPayment) {
      const set = { state: "settling" as const, claim: id, messageHash, blockhash, payer, lookAt: after(claimMs) };
      try {
        const update = { $set: set, $unset: { expiresAt: "" as const } };
        const claimed = await change({ _id: memo, state: "open", expiresAt: { $gt: after(0) } }, update);
        return claimed ? "claimed" : "not open";
      } catch (error) {
        if (isDuplicate(error)) return "used";
        throw error;
      }
    },

    /** Returns false if the claim was taken over or has expired, in which case nothing may be sent. */
    recordSignature: (memo: string, claim: string, signature: string) =>
      change({ _id: memo, state: "settling", claim, lookAt: { $gt: after(0) } }, { $set: { signature } }),

    /** Called when the holder of the claim does not know the outcome. */
    markUnknown: (memo: string, claim: string) =>
      change(
        { _id: memo, state: "settling", claim },
        { $set: { state: "unknown", lookAt: after(0) }, $unset: { claim: "" } },
      ),

    /** Called when the holder of the claim knows that nothing was sent. */
    release: (memo: string, claim: string) => change({ _id: memo, state: "settling", claim }, opening()),

    /** Called when the chain shows that the payment did not land and never will. */
    reopen: ({ _id, state, messageHash }: ClaimedQuote) => change({ _id, state, messageHash }, opening()),

    /** Succeeds even if the same payment already settled the quote, or if it was reopened in the meantime. */
    markSettled: ({ _id, messageHash, blockhash, payer }: ClaimedQuote, signature: string) =>
      change(
        { _id, $or: [{ messageHash }, { state: "open" }] },
        {
          $set: { state: "settled", messageHash, blockhash, payer, signature, settledAt: after(0) },
          $unset: { claim: "", lookAt: "", overAtHeight: "", expiresAt: "" },
        },
      ),

    /** Sets the next look-up of a payment that no process is working on. */
    postpone: ({ _id, state, messageHash }: ClaimedQuote, ms: number, overAtHeight?: bigint) =>
      change(
        { _id, state, messageHash, lookAt: { $lte: after(0) } },
        {
          $set: { state: "unknown", lookAt: after(ms), ...(overAtHeight !== undefined && { overAtHeight }) },
          $unset: { claim: "" },
        },
      ),

    /** Longest waiting first. */
    async due(limit: number): Promise<ClaimedQuote[]> {
      const found = collection.find({ lookAt: { $lte: after(0) } }, { sort: { lookAt: 1 }, limit });
      return (await stored(found.toArray())).filter(isClaimed);
    },

    markPaidBack: (memo: string) => change({ _id: memo, state: "settled" }, { $set: { paidBackAt: after(0) } }),
    remove: (memo: string) => stored(collection.deleteOne({ _id: memo, state: "settled" })),
  };
}
