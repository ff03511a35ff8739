import { invalidValue } from "#errors";
import type { Accrued, Money } from "#money";
import type { Page } from "#platform/mongo/collection";
import type { Uses } from "#platform/uses";
import type { Batches, Execution, ListedBatch, SentTransaction, StoredBatch } from "./batches.ts";
import type { BuybackConfig } from "./config.ts";

/**
 * Executes buybacks. `shared/payments` stores the batches and determines which are due; an executor converts the USDC
 * of a batch into its token, and does not use the ledger.
 */
export interface BuybackExecutor {
  /** Stored in the batches that it executed. */
  readonly name: string;
  /**
   * Called until the outcome is final, in any process. A transaction may therefore be sent only after `recordSent` has
   * resolved, and `batch.sent` must be looked up on chain before another transaction is made. If `recordSent` rejects,
   * another process has taken over the batch, and nothing may be sent. If `execute` rejects, the batch is retried
   * later.
   */
  execute(
    batch: DueBatch,
    recordSent: (sent: SentTransaction) => Promise<void>,
    signal: AbortSignal,
  ): Promise<Execution>;
}

/** The id is unique and stable: 1 to 64 characters of A-Za-z0-9_. `sent` is the last recorded transaction. */
export type DueBatch = Pick<StoredBatch, "token" | "nanoUsd" | "sent"> & { readonly id: string };

const chunkSize = 1_000;
const maxChunks = 1_000;
const maxBatches = 20;

export type Batch = ReturnType<typeof toBatch>;

/** The signature is that of the last transaction, even if that transaction may not land. */
const toBatch = ({ _id: id, sent, signature = sent?.signature, ...batch }: ListedBatch) => ({
  ...batch,
  id,
  signature,
});

export function createBuyback(deps: Uses<"log"> & { config: BuybackConfig; batches: Batches; money: Money }) {
  const { config, batches, money, log } = deps;
  const minNanoUsd = config.minimumNanoUsd > 1n ? config.minimumNanoUsd : 1n;

  /** Checks the mint that an account or a caller chose. Throws 400 if it is not eligible. */
  function assertEligible(chosen: string): void {
    if (!config.eligible.has(chosen)) throw invalidValue("buyback_token", "buyback_token is not an eligible mint.");
  }

  /**
   * Adds a token's entries to its open batch, chunk by chunk: the batch records the entries' ids, then the entries
   * record the batch, then the batch counts them. A token has one open batch, and the next chunk is read only after the
   * previous one was counted. An entry is therefore counted exactly once, even after a crash at any point and with any
   * number of processes.
   */
  async function gatherToken(token: string) {
    let entries = 0;
    // Entries added in the meantime are left to the next run, or this one might not end.
    let isMore = true;
    for (let chunks = 0; ; ) {
      const batch = await batches.openOf(token);
      if (batch.chunk) {
        await money.claim(batch.chunk.ids, batch._id);
        if (await batches.endChunk(batch)) entries += batch.chunk.ids.length;
      } else if (isMore && chunks < maxChunks) {
        const next = await money.claimable(token, chunkSize);
        isMore = next.ids.length === chunkSize;
        chunks += 1;
        if (next.ids.length > 0) await batches.beginChunk(batch, next);
      } else return { entries, due: batch.nanoUsd >= minNanoUsd && (await batches.close(batch)) ? 1 : 0 };
    }
  }

  /** Resolves to the number of gathered entries, and of batches that reached the minimum. */
  async function gather() {
    const waiting = [...(await money.accrued()), ...(await batches.open())];
    const gathered = { entries: 0, due: 0 };
    for (const token of new Set(waiting.map((each) => each.token))) {
      const { entries, due } = await gatherToken(token);
      gathered.entries += entries;
      gathered.due += due;
    }
    return gathered;
  }

  /** Returns false if the batch is to be retried later. A failure does not affect other batches. */
  async function executeOne(executor: BuybackExecutor, batch: StoredBatch, signal: AbortSignal): Promise<boolean> {
    const { _id: id, token, nanoUsd, sent } = batch;
    try {
      const due = { id, token, nanoUsd, ...(sent && { sent }) };
      const execution = await executor.execute(due, (transaction) => batches.recordSent(batch, transaction), signal);
      if (execution.kind !== "pending") return await batches.finish(batch, executor.name, execution);
    } catch (error) {
      log.warn({ err: error, batch: id, token }, "a buyback could not be executed yet");
    }
    await batches.postpone(batch);
    return false;
  }

  async function execute(executor: BuybackExecutor, signal: AbortSignal) {
    const counts = { done: 0, pending: 0 };
    for (let count = 0; count < maxBatches && !signal.aborted; count++) {
      const batch = await batches.takeDue();
      if (!batch) break;
      counts[(await executeOne(executor, batch, signal)) ? "done" : "pending"] += 1;
    }
    return counts;
  }

  /** Sums, by token, the accruals that are in no batch or in an open one. */
  async function accrued(): Promise<Accrued[]> {
    const sums = new Map((await money.accrued()).map((each) => [each.token, each]));
    for (const { token, ...open } of await batches.open()) {
      const { nanoUsd = 0n, entries = 0 } = sums.get(token) ?? {};
      sums.set(token, { token, nanoUsd: nanoUsd + open.nanoUsd, entries: entries + open.entries });
    }
    return [...sums.values()];
  }

  const list = async (page: Page): Promise<Batch[]> => (await batches.list(page)).map(toBatch);

  return { assertEligible, gather, execute, accrued, list };
}
