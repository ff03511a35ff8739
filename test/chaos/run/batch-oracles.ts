import type { Behavior, PlannedCall } from "./plan.ts";
import type { Aftermath, BookEntry, ProviderRun } from "./run-log.ts";

/** The invariants of a run of batches. Amounts are nano-USD. */

export interface PlannedLine {
  /** Unique in the run. */
  readonly customId: string;
  readonly model: string;
  readonly behavior: Behavior;
  readonly at: PlannedCall["at"];
  /** The price of its answer. 0 if the provider refuses it. */
  readonly billNanoUsd: bigint;
}

export interface ResultRecord {
  readonly customId: string;
  /** True in the error file. */
  readonly isError: boolean;
  /** Missing for a line that was not run. */
  readonly requestId: string | undefined;
  readonly status: number | undefined;
  readonly costNanoUsd: bigint;
}

export interface BatchRecord {
  readonly id: string;
  readonly account: string;
  readonly status: string;
  readonly lines: readonly PlannedLine[];
  readonly counts: { readonly total: number; readonly completed: number; readonly failed: number };
  readonly costNanoUsd: bigint;
  readonly results: readonly ResultRecord[];
}

export interface BatchLog extends Aftermath {
  readonly batches: readonly BatchRecord[];
  readonly runs: readonly ProviderRun[];
  /** Documents of lines that are left. */
  readonly lineDocuments: number;
  readonly crashes: readonly string[];
  readonly peakBytes: ReadonlyMap<string, number>;
}

const mostBytes = 700_000_000;
const sum = (amounts: readonly bigint[]) => amounts.reduce((total, amount) => total + amount, 0n);
const chargeOf = (entry: BookEntry | undefined) => -(entry?.amountNanoUsd ?? 0n);

const eachBatch = (log: BatchLog, broken: (batch: BatchRecord) => readonly string[]) =>
  log.batches.flatMap((batch) => broken(batch).map((why) => `${batch.id}: ${why}`));

function usageOf({ entries }: BatchLog): ReadonlyMap<string, BookEntry> {
  return new Map(entries.filter(({ kind }) => kind === "usage").map((entry) => [entry.id, entry]));
}

/** Parts whose process or storage failed before the batch named them. The bucket's lifecycle rule deletes them. */
export const interruptedParts = ({ batches, strayObjects }: BatchLog): readonly string[] =>
  strayObjects.filter((key) =>
    batches.some(({ id }) => ["outputs", "failures"].some((name) => key.startsWith(`batch/${id}/${name}-`))),
  );

/** Each oracle returns its violations. */
export const batchOracles = {
  "batches that did not complete": (log: BatchLog) =>
    eachBatch(log, ({ status }) => (status === "completed" ? [] : [status])),
  "lines without a result": (log: BatchLog) =>
    eachBatch(log, ({ lines, results }) => {
      const found = new Set(results.map(({ customId }) => customId));
      return lines.flatMap(({ customId }) => (found.has(customId) ? [] : [customId]));
    }),
  "results without a line": (log: BatchLog) =>
    eachBatch(log, ({ lines, results }) => {
      const known = new Set(lines.map(({ customId }) => customId));
      return results.flatMap(({ customId }) => (known.has(customId) ? [] : [customId]));
    }),
  "lines with several results": (log: BatchLog) =>
    eachBatch(log, ({ results }) => {
      const byLine = Map.groupBy(results, ({ customId }) => customId);
      return [...byLine].flatMap(([customId, of]) => (of.length === 1 ? [] : [`${customId}: ${of.length}`]));
    }),
  "counts that differ": (log: BatchLog) =>
    eachBatch(log, ({ counts: { total, completed, failed }, lines, results }) => {
      const errors = results.filter(({ isError }) => isError).length;
      const isExact = total === lines.length && completed === results.length - errors && failed === errors;
      return isExact ? [] : [`${total} lines, ${completed} completed, ${failed} failed`];
    }),
  /** Every provider answers at last, unless it refuses the line. */
  "lines that failed or passed wrongly": (log: BatchLog) =>
    eachBatch(log, ({ lines, results }) => {
      const behaviors = new Map(lines.map(({ customId, behavior }) => [customId, behavior]));
      return results.flatMap(({ customId, isError, status }) => {
        const behavior = behaviors.get(customId);
        const isRight = behavior === "refused" ? isError && status === 400 : !isError && status === 200;
        return isRight || behavior === undefined ? [] : [`${customId}: ${status}`];
      });
    }),
  /** An answer is free if its call was given up just before its worker captured the cost. */
  "results charged wrongly": (log: BatchLog) =>
    eachBatch(log, ({ lines, results }) => {
      const bills = new Map(lines.map(({ customId, billNanoUsd }) => [customId, billNanoUsd]));
      return results.flatMap(({ customId, isError, costNanoUsd }) => {
        const bill = isError ? 0n : (bills.get(customId) ?? costNanoUsd);
        return costNanoUsd === bill || costNanoUsd === 0n ? [] : [`${customId}: ${costNanoUsd} of ${bill}`];
      });
    }),
  "results that differ from the ledger": (log: BatchLog) => {
    const usage = usageOf(log);
    return eachBatch(log, ({ results }) =>
      results.flatMap(({ customId, requestId = "", costNanoUsd }) => {
        const charged = chargeOf(usage.get(requestId));
        return charged === costNanoUsd ? [] : [`${customId}: ${costNanoUsd}, in the ledger ${charged}`];
      }),
    );
  },
  /** Whatever ran twice is charged once. */
  "charges without a result": (log: BatchLog) => {
    const named = new Set(log.batches.flatMap(({ results }) => results.map(({ requestId }) => requestId)));
    return [...usageOf(log).values()].flatMap((entry) =>
      chargeOf(entry) === 0n || named.has(entry.id) ? [] : [`${entry.account} ${entry.id}: ${chargeOf(entry)}`],
    );
  },
  "costs of batches that differ": (log: BatchLog) =>
    eachBatch(log, ({ costNanoUsd, results }) => {
      const cost = sum(results.map((result) => result.costNanoUsd));
      return cost === costNanoUsd ? [] : [`${costNanoUsd}, its lines ${cost}`];
    }),
  "charged or refunded otherwise": ({ entries }: BatchLog) =>
    entries.flatMap(({ id, kind, shortfallNanoUsd }) =>
      kind === "refund" || kind === "storage" || shortfallNanoUsd > 0n ? [`${id}: ${kind}`] : [],
    ),
  "open holds": ({ openHolds }: BatchLog) => (openHolds > 0 ? [`${openHolds}`] : []),
  undecided: ({ undecided }: BatchLog) => (undecided > 0 ? [`${undecided}`] : []),
  "lost jobs": ({ openJobs }: BatchLog) => (openJobs > 0 ? [`${openJobs} still wait or run`] : []),
  "documents of lines": ({ lineDocuments }: BatchLog) => (lineDocuments > 0 ? [`${lineDocuments}`] : []),
  "balances that differ": ({ entries, balances }: BatchLog) => {
    const byAccount = Map.groupBy(entries, ({ account }) => account);
    return balances.flatMap(({ account, availableNanoUsd, heldNanoUsd }) => {
      const booked = sum((byAccount.get(account) ?? []).map(({ amountNanoUsd }) => amountNanoUsd));
      return booked === availableNanoUsd + heldNanoUsd
        ? []
        : [`${account}: ${booked - availableNanoUsd - heldNanoUsd}`];
    });
  },
  "the service's own check": ({ checkOk, checkDifferenceNanoUsd }: BatchLog) =>
    checkOk && checkDifferenceNanoUsd === 0n ? [] : [`difference ${checkDifferenceNanoUsd}`],
  "processes above 700 MB": ({ peakBytes }: BatchLog) =>
    [...peakBytes].flatMap(([name, bytes]) => (bytes > mostBytes ? [`${name}: ${Math.round(bytes / 1e6)} MB`] : [])),
  "processes that ended by themselves": ({ crashes }: BatchLog) => crashes,
  "objects that no record names": (log: BatchLog) => {
    const interrupted = new Set(interruptedParts(log));
    return log.strayObjects.filter((key) => !interrupted.has(key));
  },
} as const;

export type BatchFindings = Readonly<Record<keyof typeof batchOracles, readonly string[]>>;

export const examineBatches = (log: BatchLog): BatchFindings =>
  Object.fromEntries(Object.entries(batchOracles).map(([name, oracle]) => [name, oracle(log)])) as BatchFindings;
