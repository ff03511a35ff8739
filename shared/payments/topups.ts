import { generateKeyPairSigner } from "@solana/kit";
import { invalidValue, rateLimited } from "#errors";
import { formatUsd, unitNanoUsd } from "#money";
import { dayMs } from "#platform/clock";
import { randomBase62 } from "#platform/ids";
import { type DocumentOf, findPage, openCollection, type Page } from "#platform/mongo/collection";
import { isDuplicate } from "#platform/mongo/connection";
import type { Uses } from "#platform/uses";
import type { SolanaConfig } from "./config.ts";
import type { Progress } from "./topup-chain.ts";

const definition = {
  _id: { type: String, required: true },
  account: { type: String, required: true },
  /** A public key whose private key nobody has. Its only purpose is to find the payment. */
  reference: { type: String, required: true },
  /** The wallet, not its token account. */
  recipient: { type: String, required: true },
  asset: { type: String, required: true },
  nanoUsd: { type: BigInt, required: true },
  /** The credited amount. */
  received: { type: BigInt, required: true },
  /** The first credited transaction. */
  transaction: { type: String },
  createdAt: { type: Date, required: true },
  expiresAt: { type: Date, required: true },
  /** The time at which to poll the chain next. Unset once polling has ended. */
  lookAt: { type: Date },
  progress: { type: { until: String, newest: String, before: String, slot: BigInt }, _id: false },
  /** Set while nothing was paid. */
  removeAt: { type: Date },
} as const;

/** The id is a signature, so that the transaction counts for this top-up and for no other. */
const paymentDefinition = {
  _id: { type: String, required: true },
  topup: { type: String, required: true },
  nanoUsd: { type: BigInt, required: true },
} as const;

export type StoredTopup = DocumentOf<typeof definition, { progress?: Progress }>;
type Payment = DocumentOf<typeof paymentDefinition>;

const minNanoUsd = 1_000_000_000n;
const maxNanoUsd = 10_000n * minNanoUsd;
const lifeMs = 3_600_000;
const retentionMs = 30 * dayMs;
/** Limited, because the chain is polled for a week for each top-up. */
const maxUnpaidPerDay = 20;
/** Longer than one poll takes. */
const pollMs = 60_000;

/**
 * Returns a transfer request (docs.solanapay.com/spec). Wallets that do not decode forms read a plus sign literally, so
 * spaces are `%20`.
 */
function transferRequestOf({ recipient, asset, reference, nanoUsd }: StoredTopup): string {
  const amount = formatUsd(nanoUsd);
  const message = `Top-up of ${amount} USD`;
  const params = { amount, "spl-token": asset, reference, label: "Inference service", message };
  const query = Object.entries(params).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return `solana:${recipient}?${query.join("&")}`;
}

export type Topup = ReturnType<typeof toTopup>;

function toTopup(stored: StoredTopup, now: number) {
  const { _id: id, reference, recipient, nanoUsd, received, transaction, createdAt, expiresAt } = stored;
  const pending = expiresAt.getTime() > now ? ("pending" as const) : ("expired" as const);
  return {
    id,
    status: received > 0n ? ("completed" as const) : pending,
    nanoUsd,
    receivedNanoUsd: received,
    transaction,
    reference,
    recipient,
    url: transferRequestOf(stored),
    createdAt,
    expiresAt,
  };
}

export type Topups = ReturnType<typeof createTopups>;

export function createTopups({ solana, mongo, clock }: Uses<"mongo" | "clock"> & { solana: SolanaConfig }) {
  const { model, collection } = openCollection<StoredTopup>(mongo, "topups", definition);
  const payments = openCollection<Payment>(mongo, "topupPayments", paymentDefinition);

  const after = (ms: number) => new Date(clock.now() + ms);

  /** Throws 429 if more than `atMost` top-ups of the last day are unpaid. */
  async function assertUnpaid(account: string, atMost: number): Promise<void> {
    const unpaid = { account, createdAt: { $gt: after(-dayMs) }, received: 0n };
    if ((await collection.countDocuments(unpaid, { limit: atMost + 1 })) > atMost)
      throw rateLimited(`${maxUnpaidPerDay} top-ups of the last 24 hours are unpaid; pay one of them first.`, 3_600);
  }

  return {
    /** Throws 400 for an amount out of bounds, and 429 if too many top-ups are unpaid. */
    async open(account: string, nanoUsd: bigint): Promise<Topup> {
      if (nanoUsd < minNanoUsd || nanoUsd > maxNanoUsd || nanoUsd % unitNanoUsd !== 0n)
        throw invalidValue(
          "amount_usd",
          `amount_usd must be from ${formatUsd(minNanoUsd)} to ${formatUsd(maxNanoUsd)}, with at most six decimals.`,
        );
      await assertUnpaid(account, maxUnpaidPerDay - 1);
      const { address: reference } = await generateKeyPairSigner();
      const stored: StoredTopup = {
        _id: `top_${randomBase62(20)}`,
        account,
        reference,
        recipient: solana.payTo,
        asset: solana.asset,
        nanoUsd,
        received: 0n,
        createdAt: after(0),
        expiresAt: after(lifeMs),
        lookAt: after(0),
        removeAt: after(retentionMs),
      };
      await model.create(stored);
      // Counted again with this one: if several are opened concurrently, the last sees all of them.
      try {
        await assertUnpaid(account, maxUnpaidPerDay);
      } catch (error) {
        await model.deleteOne({ _id: stored._id });
        throw error;
      }
      return toTopup(stored, clock.now());
    },

    async find(account: string, id: string): Promise<Topup | undefined> {
      const stored = await model.findOne({ _id: id, account }).lean();
      return stored ? toTopup(stored, clock.now()) : undefined;
    },

    /** Newest first. Throws 400 for an unknown `after`. */
    async list(account: string, page: Page): Promise<Topup[]> {
      const found = await findPage(collection, page, { unknown: "this account has no top-up", owner: { account } });
      return found.map((each) => toTopup(each, clock.now()));
    },

    /** Takes the longest waiting top-up that no other process is polling. */
    async takeDue(): Promise<StoredTopup | undefined> {
      const set = { $set: { lookAt: after(pollMs) } };
      const options = { sort: { lookAt: 1 }, returnDocument: "after" } as const;
      return (await collection.findOneAndUpdate({ lookAt: { $lte: after(0) } }, set, options)) ?? undefined;
    },

    /** Ends a poll, which is the last one unless `nextMs` is set. Changes nothing if another process has taken over. */
    async endPoll({ _id, lookAt }: StoredTopup, { progress, nextMs }: { progress?: Progress; nextMs?: number }) {
      const set = { ...(progress && { progress }), ...(nextMs !== undefined && { lookAt: after(nextMs) }) };
      const unset = nextMs === undefined && { $unset: { lookAt: "" as const } };
      const update = { ...(Object.keys(set).length > 0 && { $set: set }), ...unset };
      await collection.updateOne({ _id, lookAt: lookAt as Date }, update, { ignoreUndefined: true });
    },

    /** Returns the amount of the first claim, or undefined if the transaction counts for another top-up. */
    async claim({ _id: topup }: StoredTopup, signature: string, nanoUsd: bigint): Promise<bigint | undefined> {
      try {
        await payments.model.create({ _id: signature, topup, nanoUsd });
        return nanoUsd;
      } catch (error) {
        if (!isDuplicate(error)) throw error;
        return (await payments.model.findOne({ _id: signature, topup }).lean())?.nanoUsd;
      }
    },

    /** Updates the credited amount. The sum only grows, so any number of processes may write it in any order. */
    async showCredited({ _id: topup }: StoredTopup, transaction: string): Promise<void> {
      const sum = { $group: { _id: null, nanoUsd: { $sum: "$nanoUsd" } } };
      const [sums] = await payments.collection.aggregate<{ nanoUsd: bigint }>([{ $match: { topup } }, sum]).toArray();
      const received = sums?.nanoUsd ?? 0n;
      await collection.updateOne({ _id: topup, transaction: { $exists: false } }, { $set: { transaction } });
      await collection.updateOne({ _id: topup }, { $max: { received }, $unset: { removeAt: "" } });
    },
  };
}
