import { invalidValue } from "#errors";
import type { Accrued, Money, Page } from "#money";
import type { Logger } from "#platform/logger";
import type { Batches, StoredBatch } from "./batches.ts";
import type { BuybackConfig } from "./config.ts";
import type { BuybackExecutor } from "./executor.ts";

export interface Batch {
  readonly id: string;
  readonly token: string;
  readonly state: "open" | "due" | "done";
  readonly nanoUsd: bigint;
  readonly entries: number;
  readonly createdAt: Date;
  /** Sent, whether it stands or not. */
  readonly signature?: string;
  readonly executor?: string;
  /** Units of USDC and of the token. */
  readonly spent?: bigint;
  readonly received?: bigint;
  readonly doneAt?: Date;
}

export interface Gathered {
  readonly entries: number;
  /** Batches that came over the minimum. */
  readonly due: number;
}

export interface Executed {
  readonly done: number;
  readonly pending: number;
}

const chunkSize = 1_000;
const mostChunks = 1_000;
const mostBatches = 20;

const show = (stored: StoredBatch): Batch => {
  const { _id: id, token, state, nanoUsd, entries, createdAt, sent, executor, spent, received, doneAt } = stored;
  const signature = stored.signature ?? sent?.signature;
  return {
    id,
    token,
    state,
    nanoUsd,
    entries,
    createdAt,
    ...(signature !== undefined && { signature }),
    ...(executor !== undefined && { executor }),
    ...(spent !== undefined && { spent }),
    ...(received !== undefined && { received }),
    ...(doneAt !== undefined && { doneAt }),
  };
};

interface Deps {
  readonly config: BuybackConfig;
  readonly batches: Batches;
  readonly money: Pick<Money, "accrued" | "claimable" | "claim">;
  readonly log: Logger;
}

export function createBuyback({ config, batches, money, log }: Deps) {
  const least = config.minimumNanoUsd > 1n ? config.minimumNanoUsd : 1n;

  /** The mint that a caller chose. 400 if none of this service's. */
  function tokenOf(chosen: string): string {
    if (!config.eligible.has(chosen)) throw invalidValue("buyback_token", "buyback_token is not an eligible mint.");
    return chosen;
  }

  /**
   * Takes a token's entries into its open batch, chunk by chunk: the batch names the entries, then they name the batch,
   * then the batch counts them. There is one open batch of a token, and the next chunk is read only after the one
   * before was counted; so an entry is counted once, whoever dies in between and however many do it.
   */
  async function gatherToken(token: string): Promise<Gathered> {
    let entries = 0;
    // What comes meanwhile is the next run's: with new charges every moment this one would not end.
    let isMore = true;
    for (let chunks = 0; ; ) {
      const batch = await batches.openOf(token);
      if (batch.chunk) {
        await money.claim(batch.chunk.ids, batch._id);
        if (await batches.take(batch)) entries += batch.chunk.ids.length;
      } else if (isMore && chunks < mostChunks) {
        const next = await money.claimable(token, chunkSize);
        isMore = next.ids.length === chunkSize;
        chunks += 1;
        if (next.ids.length > 0) await batches.plan(batch, next);
      } else return { entries, due: batch.nanoUsd >= least && (await batches.close(batch)) ? 1 : 0 };
    }
  }

  async function gather(): Promise<Gathered> {
    const waiting = [...(await money.accrued()), ...(await batches.open())];
    let gathered: Gathered = { entries: 0, due: 0 };
    for (const token of new Set(waiting.map((each) => each.token))) {
      const { entries, due } = await gatherToken(token);
      gathered = { entries: gathered.entries + entries, due: gathered.due + due };
    }
    return gathered;
  }

  /** What fails comes again; it keeps none of the others. */
  async function executeOne(executor: BuybackExecutor, batch: StoredBatch, signal: AbortSignal): Promise<boolean> {
    const { _id: id, token, nanoUsd, sent } = batch;
    try {
      const due = { id, token, nanoUsd, ...(sent && { sent }) };
      const execution = await executor.execute(due, (transaction) => batches.remember(batch, transaction), signal);
      if (execution.kind !== "pending") return await batches.finish(batch, executor.name, execution);
    } catch (error) {
      log.warn({ err: error, batch: id, token }, "a buyback is not executed yet");
    }
    await batches.later(batch);
    return false;
  }

  async function execute(executor: BuybackExecutor, signal: AbortSignal): Promise<Executed> {
    const counts = { done: 0, pending: 0 };
    for (let count = 0; count < mostBatches && !signal.aborted; count++) {
      const batch = await batches.lease();
      if (!batch) break;
      counts[(await executeOne(executor, batch, signal)) ? "done" : "pending"] += 1;
    }
    return counts;
  }

  /** By token: what no batch has, and what lies in the open ones. */
  async function accrued(): Promise<Accrued[]> {
    const sums = new Map((await money.accrued()).map((each) => [each.token, each]));
    for (const { token, ...open } of await batches.open()) {
      const { nanoUsd = 0n, entries = 0 } = sums.get(token) ?? {};
      sums.set(token, { token, nanoUsd: nanoUsd + open.nanoUsd, entries: entries + open.entries });
    }
    return [...sums.values()];
  }

  const list = async (page: Page): Promise<Batch[]> => (await batches.list(page)).map(show);

  return { tokenOf, gather, execute, accrued, list };
}
