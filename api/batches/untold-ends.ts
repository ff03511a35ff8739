import type { Batches, StoredBatch, StoredLine } from "#batches";
import { noCapacity, type ServiceError, upstreamTimeout } from "#errors";
import { isTextPool, type Pool } from "#jobs";
import type { LineCall, LineCallDeps, LineCalls } from "./line-calls.ts";

/** How often calls are looked at of which no frame has come. */
const lookMs = 5_000;
/** A worker ends a call this long after its deadline at the latest. */
const deadlineMarginMs = 10_000;
/** Lines that are ended, and given up, at one look, so that the claim of the batch is renewed in time. */
const mostAtOnce = 2_000;
const mostGivenUp = 200;
/** Entries of the ledger that are read at once. */
const readAtOnce = 64;

const timedOut = () => upstreamTimeout("The call ran out of time.");
const lost = () => noCapacity("The queue or its worker lost this call; nothing was charged.");

/** A line in flight. One that another instance submitted, or that a provider's batch has, has no call here. */
export interface OpenLine {
  readonly line: StoredLine;
  readonly call: LineCall | undefined;
  readonly since: number;
}

type OnEnd = (requestId: string, costNanoUsd: bigint) => void;

/** Ends the tries of which no frame tells the end here: it was lost, or came to another instance, or nobody runs them. */
export function createUntoldEnds(
  {
    batches,
    calls,
    money,
    reader,
    queues,
    clock,
    instance,
  }: LineCallDeps & { readonly batches: Batches; readonly calls: LineCalls },
  batch: StoredBatch,
  pool: Pool,
  onEnd: OnEnd,
) {
  const { _id, account } = batch;
  let lookedAt = Number.NEGATIVE_INFINITY;

  const giveUp = async ({ line, call }: OpenLine, error: ServiceError) =>
    onEnd(line.requestId, await calls.giveUp(batch, line, error, call));

  /** Until there is an entry, a worker still has to capture the cost. */
  async function endStored(stored: readonly StoredLine[]): Promise<void> {
    for (let from = 0; from < stored.length; from += readAtOnce)
      await Promise.all(
        stored.slice(from, from + readAtOnce).map(async ({ requestId, held }) => {
          const entry = held > 0n ? await money.entry(account, requestId) : { costNanoUsd: 0n };
          if (entry) onEnd(requestId, entry.costNanoUsd);
        }),
      );
  }

  async function endGone(silent: readonly OpenLine[], openAtProviders: ReadonlySet<string>): Promise<void> {
    const isGone = new Map<string, boolean>();
    for (const each of silent) {
      const { instance: submitter, requestId, providerBatch } = each.line;
      if (providerBatch !== undefined) {
        if (!openAtProviders.has(providerBatch)) await giveUp(each, lost());
      } else if (submitter === instance) {
        if (!calls.isOpen(requestId)) await giveUp(each, lost());
      } else {
        // A group's job is found by its instance.
        if (!isGone.has(submitter)) {
          const isAlive = await reader.instanceLives(submitter);
          isGone.set(submitter, !isAlive && !(isTextPool(pool) && (await queues.hasJobsOf(submitter))));
        }
        if (!isGone.get(submitter)) continue;
        if (isTextPool(pool) || !(await queues.isPending(pool, requestId))) await giveUp(each, lost());
      }
    }
  }

  return async function endUntold(open: readonly OpenLine[]): Promise<void> {
    const now = clock.now();
    const late = open.filter(({ line }) => now > line.deadlineAt.getTime() + deadlineMarginMs);
    for (const each of late.slice(0, mostGivenUp)) await giveUp(each, timedOut());
    if (now - lookedAt < lookMs || open.length === 0) return;
    lookedAt = now;
    const looked = open.filter(({ call, since }) => !call || now - since >= lookMs);
    // Read first: when a provider's batch has ended, all its lines have a result.
    const openAtProviders = looked.some(({ line }) => line.providerBatch !== undefined)
      ? await batches.providerBatches.openOf(account, _id)
      : new Set<string>();
    const ended = await batches.lines.endedTries(
      account,
      looked.map(({ line }) => line._id),
    );
    await endStored(looked.flatMap(({ line }) => (ended.has(line.requestId) ? [line] : [])).slice(0, mostAtOnce));
    const silent = looked.filter(({ line }) => !ended.has(line.requestId));
    await endGone(silent, openAtProviders);
  };
}
