import {
  type Batches,
  type EndedLine,
  type LineOutcome,
  noCounts,
  noUsage,
  type ResultLine,
  resultOf,
  resultOfUnrun,
  type StoredBatch,
  type StoredLine,
} from "#batches";
import { tokensOf } from "#catalog";
import { ServiceError } from "#errors";
import type { Files } from "#files";
import { randomBase62 } from "#platform/ids";
import type { createInput } from "./input.ts";
import { customIdOf } from "./refused-line.ts";

/** A part ends with the line that reaches one of these. */
const partBytes = 5 * 1024 * 1024;
const partLines = 1_000;
/** Lines of the file that are read together. */
const peekCount = 64;

/** The tries of a line, and the pauses between them. */
const maxTries = 5;
const firstPauseMs = 10_000;
const maxPauseMs = 600_000;
const jitter = 0.2;

/** When a line that has failed is tried again. Undefined if it is not. */
export function retryAt({ error, tries }: Pick<EndedLine, "error" | "tries">, now: number, random: number) {
  if (!error) return undefined;
  const { status, shouldRetry } = new ServiceError(error);
  // A live caller is told not to repeat a call that ran out of time; nobody waits for a line.
  const mayPass = status === 504 || ((status === 429 || status >= 500) && shouldRetry !== false);
  if (!mayPass || tries >= maxTries) return undefined;
  const pauseMs = Math.min(maxPauseMs, firstPauseMs * 4 ** (tries - 1));
  return new Date(now + pauseMs * (1 - jitter + 2 * jitter * random));
}

interface Stores {
  readonly batches: Batches;
  readonly files: Pick<Files, "batchFiles">;
}

/** Gathers results until they are a part. */
export function createPart(batch: Pick<StoredBatch, "_id" | "kind" | "endpoint">) {
  const texts = { outputs: [] as string[], failures: [] as string[] };
  const counts: Record<LineOutcome, number> = { ...noCounts };
  const lines: number[] = [];
  let usage = noUsage;
  let costNanoUsd = 0n;
  let size = 0;

  function add({ outcome, text }: ResultLine, line: number): void {
    const isOutput = outcome === "succeeded" || batch.kind === "anthropic";
    texts[isOutput ? "outputs" : "failures"].push(text);
    counts[outcome]++;
    lines.push(line);
    size += text.length;
  }

  return {
    add,
    /** Adds a line that has ended, with what the ledger says that it cost. */
    addEnded(ended: EndedLine, chargedNanoUsd: bigint): void {
      const { answer } = ended;
      const charged = answer ? { ...ended, answer: { ...answer, costNanoUsd: chargedNanoUsd } } : ended;
      add(resultOf(batch.kind, batch.endpoint, charged), ended.line);
      costNanoUsd += chargedNanoUsd;
      if (!answer) return;
      const tokens = tokensOf(answer.usage);
      usage = {
        inputTokens: usage.inputTokens + tokens.inputTokens,
        cachedTokens: usage.cachedTokens + tokens.cachedTokens,
        outputTokens: usage.outputTokens + tokens.outputTokens,
        reasoningTokens: usage.reasoningTokens + tokens.reasoningTokens,
      };
    },
    isFull: () => size >= partBytes || lines.length >= partLines,
    isEmpty: () => lines.length === 0,
    /** Stores the part and records it. Resolves with the batch, or undefined if another process has it. */
    async record(
      { batches, files }: Stores,
      claimed: StoredBatch,
      cursor: StoredBatch["cursor"],
    ): Promise<StoredBatch | undefined> {
      const put = async (name: "outputs" | "failures") =>
        texts[name].length === 0
          ? []
          : [await files.batchFiles.putPart(batch._id, `${name}-${randomBase62(16)}`, texts[name].join(""))];
      const [outputs, failures] = [await put("outputs"), await put("failures")];
      const recorded = await batches.record(claimed, {
        outputs,
        failures,
        counts,
        usage,
        costNanoUsd,
        cursor,
        lines,
      });
      if (!recorded) await files.batchFiles.removeParts([...outputs, ...failures]);
      return recorded;
    },
  };
}

/**
 * Records the lines that are not run, because the batch was cancelled or has expired. Resolves with the batch, or undefined if
 * another process has it.
 */
export async function recordUnrun(
  stores: Stores,
  claimed: StoredBatch,
  {
    postponed,
    input,
    outcome,
  }: {
    readonly postponed: Map<number, StoredLine>;
    readonly input: ReturnType<typeof createInput>;
    readonly outcome: Extract<LineOutcome, "expired" | "cancelled">;
  },
): Promise<StoredBatch | undefined> {
  const { _id, kind } = claimed;
  let batch = claimed;
  while (postponed.size > 0 || !input.isAtEnd()) {
    const part = createPart(batch);
    for (const line of postponed.values()) {
      part.add(resultOfUnrun(kind, outcome, line), line.line);
      postponed.delete(line.line);
      if (part.isFull()) break;
    }
    while (!part.isFull() && !input.isAtEnd()) {
      const lines = await input.peek(peekCount);
      if (lines.length === 0) break;
      for (const read of lines) {
        const customId = customIdOf(read.content);
        part.add(resultOfUnrun(kind, outcome, { batch: _id, line: read.line, customId }), read.line);
        input.take(read);
        if (part.isFull()) break;
      }
    }
    const updated = await part.record(stores, batch, input.cursor());
    if (!updated) return undefined;
    batch = updated;
  }
  return batch;
}

/** Ends a batch whose lines are all recorded, with its files of results. */
export async function finishBatch({ batches, files }: Stores, claimed: StoredBatch): Promise<void> {
  const finalized = await (claimed.status === "finalizing" ? batches.renew(claimed) : batches.finalize(claimed));
  if (!finalized) return;
  const { _id, account, counts, times, outputs, failures, outputLifeSeconds } = finalized;
  // A process that died before it recorded its part has left it.
  await files.batchFiles.removeOtherParts(_id, [...outputs, ...failures]);
  const lifetimeMs = outputLifeSeconds === undefined ? undefined : outputLifeSeconds * 1_000;
  // The results of messages are read from the batch; the file makes them expire.
  const create = async (name: string, parts: StoredBatch["outputs"]) => {
    if (parts.length === 0) return undefined;
    const filename = `${_id}_${name}.jsonl`;
    return (await files.batchFiles.createOutput({ account, requestId: _id, filename, parts, lifetimeMs })).id;
  };
  const outputFile = await create("output", outputs);
  const errorFile = await create("error", failures);
  const end = times.cancelling ? "cancelled" : counts.expired > 0 ? "expired" : "completed";
  await batches.end(finalized, end, { outputFile, errorFile });
}
