import { newRequestId } from "#platform/ids";

/** Ledger entries as the service stores them, for ledgers too large to create through calls. */
const costNanoUsd = 10n;

interface Movement {
  readonly account: string;
  readonly createdAt: Date;
}

export const storedCredit = ({ account, createdAt }: Movement, amount: bigint) => ({
  _id: `credit:${account}:stored`,
  account,
  kind: "credit",
  amount,
  createdAt,
  decider: "bench",
});

export const storedCall = ({ account, createdAt }: Movement) => ({
  _id: newRequestId(),
  account,
  kind: "usage",
  amount: -costNanoUsd,
  createdAt,
  decider: "bench",
  request: {
    key: "key_bench",
    endpoint: "/v1/chat/completions",
    model: "openai/gpt-4o-mini",
    upstream: "openai",
    attempts: [{ s: 3, d: 1_990 }],
    status: "succeeded",
    usage: { input: 1_000, output: 500 },
    estimated: false,
    queueMs: 2,
    firstTokenMs: 300,
    totalMs: 2_000,
    shortfall: 0n,
  },
});

/** The cost of this many stored calls. */
export const costOfStored = (calls: number): bigint => BigInt(calls) * costNanoUsd;

interface Collection {
  insertMany(documents: { _id: string }[], options: object): Promise<unknown>;
}

const batchSize = 5_000;

export async function insertAll(
  collection: Collection,
  count: number,
  make: (index: number) => { _id: string },
): Promise<void> {
  const options = { writeConcern: { w: 1, journal: false }, ordered: false };
  for (let from = 0; from < count; from += batchSize) {
    const some = Array.from({ length: Math.min(batchSize, count - from) }, (_, index) => make(from + index));
    await collection.insertMany(some, options);
  }
}
