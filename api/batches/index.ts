/**
 * Feeds batches: claims those that no other instance works at, and admits their lines as calls (docs/adr/0036-batches.md).
 * Lines run on capacity that is idle: below all other calls in priority, within a share of each pool's slots, not while
 * calls wait there, and few while processes are busy with live calls. Accounts share what is free evenly, and so do the
 * batches of an account, and the instances that work at them.
 */
import { batchEndpoint, runningStatuses, type StoredBatch } from "#batches";
import { jobCatalog, type Pool, type WorkerRegistry } from "#jobs";
import { sleep } from "#platform/clock";
import { createUtilization } from "#platform/process/utilization";
import { nextRate } from "./give-way.ts";
import { createLineCalls } from "./line-calls.ts";
import { type RunBatchDeps, runBatch } from "./run-batch.ts";

const claimEveryMs = 500;
/** How often an instance looks which others have batches, and how busy processes are. */
const lookEveryMs = 2_000;
const paceEveryMs = 250;
/** Work that was interrupted goes on after this time. */
const interruptedMs = 2_000;
/** Batches that one instance works at, and those of them that one account may have. */
const maxBatches = 40;
const maxOfAccount = 4;

interface Running {
  readonly batch: StoredBatch;
  readonly pool: Pool;
  inFlight: number;
  /** Lines that may begin until the next look at the load. */
  mayBegin: number;
}

/** A batch that another instance works at. */
interface OfOther {
  readonly instance: string;
  readonly account: string;
  readonly pool: Pool;
}

const poolOf = (endpoint: string): Pool => jobCatalog[batchEndpoint(endpoint).job].pool;

export function createBatchFeeder(
  deps: Omit<RunBatchDeps, "calls" | "allowed" | "paced" | "ending" | "lines"> & {
    readonly registry: WorkerRegistry;
    /** The calls that this process answers now. */
    readonly liveCalls: () => number;
    /** The part of a pool's slots that lines of all instances may take, from 0 to 1. */
    readonly poolShare: number;
    /** Lines of an account that run at once in a pool, of all instances. */
    readonly linesPerAccount: number;
  },
) {
  const { batches, registry, instance, liveCalls, poolShare, linesPerAccount, clock, log } = deps;
  const ending = new AbortController();
  const running = new Set<Running>();
  /** Each claim has a name of its own, so that a process which lost one cannot take a later one for it. */
  let claims = 0;
  const calls = createLineCalls({ ...deps, lines: batches.lines });
  let others: readonly OfOther[] = [];
  let lookedAt = Number.NEGATIVE_INFINITY;
  const utilization = createUtilization();
  let pacedAt = clock.now();
  let stopPacing = () => {};
  /** Lines that may begin in a second, and those that have begun since the last look at the load. */
  const rates = new Map<Pool, number>();
  const begun = new Map<Pool, number>();
  const sum = (of: Iterable<Running>) => [...of].reduce((total, { inFlight }) => total + inFlight, 0);

  /** Each instance that has batches in a pool, or of an account there, takes the same part of a limit. */
  function partOf(limit: number, pool: Pool, account?: string): number {
    const sharing = others.filter((each) => each.pool === pool && (account ?? each.account) === each.account);
    return Math.max(1, Math.floor(limit / (1 + new Set(sharing.map((each) => each.instance)).size)));
  }

  /** The slots of a pool that lines of this instance may take now. */
  function slotsOf(pool: Pool): number {
    const load = registry.loads()?.find((each) => each.pool === pool);
    if (!load || load.waiting > 0) return 0;
    return partOf(poolShare * (load.running + load.free), pool);
  }

  function allowed(own: Running): number {
    const { pool, inFlight, batch } = own;
    const { account } = batch;
    const inPool = [...running].filter((each) => each.pool === pool);
    const ofAccount = inPool.filter(({ batch }) => batch.account === account);
    const accounts = new Set(inPool.map(({ batch }) => batch.account)).size;
    const slots = slotsOf(pool);
    const lines = partOf(linesPerAccount, pool, account);
    const perAccount = Math.min(lines, Math.max(1, Math.floor(slots / accounts)));
    const perBatch = Math.max(1, Math.floor(perAccount / ofAccount.length));
    return Math.floor(Math.min(perBatch - inFlight, lines - sum(ofAccount), slots - sum(inPool), own.mayBegin));
  }

  /** Limits how many lines begin until the next look, while live calls keep processes busy. */
  function pace(): void {
    const seconds = Math.max(1, clock.now() - pacedAt) / 1_000;
    pacedAt = clock.now();
    const own = utilization();
    for (const [pool, inPool] of Map.groupBy(running, (each) => each.pool)) {
      const workers = registry.pressure(pool);
      const rate = nextRate(rates.get(pool) ?? Number.POSITIVE_INFINITY, {
        begun: (begun.get(pool) ?? 0) / seconds,
        calls: liveCalls() + workers.calls,
        utilization: Math.max(own, workers.utilization),
      });
      rates.set(pool, rate);
      begun.set(pool, 0);
      const accounts = Map.groupBy(inPool, ({ batch }) => batch.account);
      for (const ofAccount of accounts.values())
        for (const entry of ofAccount) {
          const part = (rate * paceEveryMs) / 1_000 / accounts.size / ofAccount.length;
          // The rest of the last part counts only as far as the part is less than a line.
          entry.mayBegin = Math.min(part + 1, (Number.isFinite(entry.mayBegin) ? entry.mayBegin : 0) + part);
        }
    }
  }

  /** Looks which other instances have batches. */
  async function look(): Promise<void> {
    lookedAt = clock.now();
    const claimed = await batches.claimed();
    others = claimed.flatMap(({ account, endpoint, claimedBy = "" }) => {
      const [by = ""] = claimedBy.split(".");
      return by === instance ? [] : [{ instance: by, account, pool: poolOf(endpoint) }];
    });
  }

  async function work(batch: StoredBatch): Promise<void> {
    const entry: Running = { batch, pool: poolOf(batch.endpoint), inFlight: 0, mayBegin: 0 };
    running.add(entry);
    try {
      const own = {
        ...deps,
        lines: batches.lines,
        calls,
        allowed: () => allowed(entry),
        paced: () => Math.floor(entry.mayBegin),
        ending: ending.signal,
      };
      await runBatch(own, batch, (inFlight, started) => {
        entry.inFlight = inFlight;
        entry.mayBegin -= started;
        begun.set(entry.pool, (begun.get(entry.pool) ?? 0) + started);
      });
    } catch (error) {
      log.warn({ err: error, batch: batch._id }, "the work at a batch was interrupted; it will go on");
      // Otherwise the claim ends by itself. The next one begins with what is stored.
      await batches.release(batch, interruptedMs).catch(() => undefined);
    } finally {
      running.delete(entry);
    }
  }

  /** Returns the number of batches claimed. */
  async function claim(): Promise<number> {
    for (let count = 0; ; count++) {
      if (ending.signal.aborted || running.size >= maxBatches) return count;
      const byAccount = Object.entries(Object.groupBy([...running], ({ batch }) => batch.account));
      const busy = byAccount.flatMap(([account, own = []]) => (own.length >= maxOfAccount ? [account] : []));
      const batch = await batches.claim(`${instance}.${claims++}`, [...runningStatuses, "finalizing"], busy);
      if (!batch) return count;
      void work(batch);
    }
  }

  async function claimUntilStopped(): Promise<void> {
    while (!ending.signal.aborted) {
      try {
        const isNew = (await claim()) > 0;
        if (isNew || (running.size > 0 && clock.now() - lookedAt >= lookEveryMs)) await look();
      } catch (error) {
        log.warn({ err: (error as Error).message }, "no batch could be claimed");
      }
      await sleep(clock, claimEveryMs, ending.signal).catch(() => undefined);
    }
  }

  return {
    start(): void {
      stopPacing = clock.every(paceEveryMs, pace);
      void claimUntilStopped();
    },
    /** Gives up the lines whose jobs Redis has lost. They are tried again. */
    findLost: () => calls.findLost(),
    /** The lines in flight, by pool. */
    inFlight: (): ReadonlyMap<Pool, number> =>
      new Map([...Map.groupBy(running, ({ pool }) => pool)].map(([pool, of]) => [pool, sum(of)])),
    /** Begins no further line. Resolves when those in flight are recorded and the claims are given back. */
    async stop(): Promise<void> {
      ending.abort();
      while (running.size > 0) await sleep(clock, claimEveryMs / 10);
      stopPacing();
    },
  };
}
