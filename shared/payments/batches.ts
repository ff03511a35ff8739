import type { mongo as driver } from "mongoose";
import type { Claimable } from "#money";
import { randomBase62 } from "#platform/ids";
import { type DocumentOf, findPage, openCollection, type Page } from "#platform/mongo/collection";
import { isDuplicate } from "#platform/mongo/connection";
import type { Uses } from "#platform/uses";

export interface SentTransaction {
  readonly signature: string;
  /** Signed, in base64. It may be sent again unchanged. */
  readonly transaction: string;
  /** The transaction can no longer land above this height at finalized commitment. */
  readonly lastValidBlockHeight: bigint;
}

export type Execution =
  /** Nothing was bought, because the operator buys. */
  | { readonly kind: "recorded" }
  /** Bought on chain. Amounts are base units. */
  | { readonly kind: "bought"; readonly signature: string; readonly spent: bigint; readonly received: bigint }
  /** Sent, but the outcome is not final. */
  | { readonly kind: "pending" };

const states = ["open", "due", "done"] as const;

const definition = {
  _id: { type: String, required: true },
  token: { type: String, required: true },
  /** Open: it collects entries. Due: complete and over the minimum. Done: executed. */
  state: { type: String, enum: states, required: true },
  nanoUsd: { type: BigInt, required: true },
  entries: { type: Number, required: true },
  createdAt: { type: Date, required: true },
  /** The number of counted chunks of an open batch, and the chunk that is being claimed. */
  chunks: { type: Number, required: true },
  chunk: { type: { ids: [String], nanoUsd: BigInt }, _id: false },
  /** The execution that has taken a due batch, and the time at which the next one may begin. */
  lease: { type: String },
  lookAt: { type: Date },
  sent: { type: { signature: String, transaction: String, lastValidBlockHeight: BigInt }, _id: false },
  /** Set once it is done. */
  executor: { type: String },
  signature: { type: String },
  spent: { type: BigInt },
  received: { type: BigInt },
  doneAt: { type: Date },
} as const;

export type StoredBatch = DocumentOf<typeof definition, { chunk?: Claimable; sent?: SentTransaction }>;

export type ListedBatch = Omit<StoredBatch, "chunks" | "chunk" | "lease" | "lookAt">;

const executionMs = 120_000;
const retryDelayMs = 30_000;
const countLimit = 10_000;

export type Batches = ReturnType<typeof createBatches>;

/** The collection `buybacks`. Every change is a compare-and-set of one document. */
export function createBatches({ mongo, clock }: Uses<"mongo" | "clock">) {
  const { model, collection } = openCollection<StoredBatch>(mongo, "buybacks", definition);

  const after = (ms: number) => new Date(clock.now() + ms);

  async function change(filter: driver.Filter<StoredBatch>, update: driver.UpdateFilter<StoredBatch>) {
    const { matchedCount } = await collection.updateOne(filter, update);
    return matchedCount === 1;
  }

  /** Returns the open batch of a token, and creates it if there is none. */
  async function openOf(token: string): Promise<StoredBatch> {
    for (;;) {
      const found = await collection.findOne({ token, state: "open" });
      if (found) return found;
      const fresh = { nanoUsd: 0n, entries: 0, chunks: 0, createdAt: after(0) };
      const batch: StoredBatch = { _id: `bb_${randomBase62(20)}`, token, state: "open", ...fresh };
      try {
        await model.create(batch);
        return batch;
      } catch (error) {
        if (!isDuplicate(error)) throw error;
      }
    }
  }

  /** The partial index needs a bound on the token. */
  const open = (): Promise<Pick<StoredBatch, "token" | "nanoUsd" | "entries">[]> => {
    const projection = { token: 1, nanoUsd: 1, entries: 1 };
    return collection.find({ state: "open", token: { $gt: "" } }, { projection }).toArray();
  };

  /** Records the entries of the next chunk. Returns false if another process did so, or if the batch is closed. */
  const beginChunk = ({ _id, chunks }: StoredBatch, { ids, nanoUsd }: Claimable) =>
    change({ _id, state: "open", chunks, chunk: { $exists: false } }, { $set: { chunk: { ids, nanoUsd } } });

  /** Counts the chunk once its entries are claimed. Returns false if another process did so. */
  const endChunk = ({ _id, chunks, chunk }: StoredBatch) =>
    change(
      { _id, state: "open", chunks, chunk: { $exists: true } },
      { $inc: { nanoUsd: chunk?.nanoUsd ?? 0n, entries: chunk?.ids.length ?? 0, chunks: 1 }, $unset: { chunk: "" } },
    );

  const close = ({ _id, chunks }: StoredBatch) =>
    change({ _id, state: "open", chunks, chunk: { $exists: false } }, { $set: { state: "due", lookAt: after(0) } });

  /** Takes a due batch that no process is executing. */
  async function takeDue(): Promise<(StoredBatch & { readonly lease: string }) | undefined> {
    const id = randomBase62(16);
    const free = { state: "due" as const, lookAt: { $lte: after(0) } };
    const set = { $set: { lease: id, lookAt: after(executionMs) } };
    const options = { sort: { lookAt: 1 }, returnDocument: "after" } as const;
    const taken = await collection.findOneAndUpdate(free, set, options);
    return taken ? { ...taken, lease: id } : undefined;
  }

  async function recordSent({ _id, lease }: StoredBatch, sent: SentTransaction): Promise<void> {
    const own = { _id, state: "due" as const, lease: lease as string, lookAt: { $gt: after(0) } };
    if (!(await change(own, { $set: { sent } }))) throw new Error(`another process has taken over the batch ${_id}`);
  }

  const postpone = ({ _id, lease }: StoredBatch) =>
    change(
      { _id, state: "due", lease: lease as string },
      { $set: { lookAt: after(retryDelayMs) }, $unset: { lease: "" } },
    );

  function finish({ _id }: StoredBatch, executor: string, execution: Exclude<Execution, { kind: "pending" }>) {
    const { kind: _, ...bought } = execution;
    const set = { state: "done" as const, executor, doneAt: after(0), ...bought };
    return change({ _id, state: "due" }, { $set: set, $unset: { lease: "", lookAt: "" } });
  }

  /** Newest first. */
  const list = (page: Page): Promise<ListedBatch[]> =>
    findPage(collection, page, {
      unknown: "there is no batch",
      projection: { chunks: 0, chunk: 0, lease: 0, lookAt: 0 },
    });

  /** Bounded, in case an executor fails for long. MongoDB knows the size of the collection without counting. */
  async function countByState() {
    const count = (filter: driver.Filter<StoredBatch>) => collection.countDocuments(filter, { limit: countLimit });
    const [open, due, all] = await Promise.all([
      count({ state: "open", token: { $gt: "" } }),
      count({ state: "due", lookAt: { $exists: true } }),
      collection.estimatedDocumentCount(),
    ]);
    return { open, due, done: Math.max(0, all - open - due) };
  }

  return { countByState, open, openOf, beginChunk, endChunk, close, takeDue, recordSent, postpone, finish, list };
}
