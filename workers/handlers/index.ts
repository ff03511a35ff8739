import { isProviderBatch } from "#batches";
import type { ClusterStats } from "#cluster-stats";
import { isEnded } from "#detached-calls";
import { noCapacity } from "#errors";
import type { Files } from "#files";
import { type JobName, type JobPayload, type KnownWorker, type PaidJobName, pools, type Queues } from "#jobs";
import type { KeyStore } from "#key-records";
import type { Archive } from "#money";
import type { Payments } from "#payments";
import type { ByteBudget } from "#platform/byte-budget";
import type { Background } from "#platform/concurrency/background";
import type { Tracing } from "#platform/observability/tracing";
import type { ProviderKeys } from "#provider-keys";
import type { Secrets } from "#secrets";
import type { Traffic } from "#traffic";
import type { Webhooks } from "#webhooks";
import { runProviderBatches } from "../batches/provider-batches.ts";
import { validateBatches } from "../batches/validate.ts";
import type { Executor } from "../executors/index.ts";
import { type ProviderKeyChecker, watchProviderKeys } from "../provider-keys/index.ts";
import type { CallHandler, Delivery, RunCallDeps } from "../run-call/context.ts";
import { endWithoutRunning, runCall } from "../run-call.ts";
import type { WebhookSender } from "../webhooks/index.ts";
import { topupCompleted, watchBalances, watchBudgets, watchKeyExpiry } from "./account-events.ts";
import { chat } from "./chat.ts";
import { checkLedger, countStored } from "./cluster-stats.ts";
import { count } from "./count.ts";
import { endDetachedCalls, type RecoveredJob } from "./detached-calls.ts";
import { embeddings } from "./embeddings.ts";
import { image, media } from "./generate.ts";
import { moderation } from "./moderation.ts";
import { rerank } from "./rerank.ts";
import { rewrapSecrets } from "./rewrap.ts";
import { watchUpstreams } from "./upstream-events.ts";
import { enqueueWebhooks } from "./webhooks.ts";

export interface HandlerDeps extends RunCallDeps {
  readonly queues: Queues;
  readonly payments: Payments;
  readonly keyStore: KeyStore;
  readonly clusterStats: ClusterStats;
  readonly archive: Archive;
  /** Counts payments whose outcome was read from the chain. */
  readonly observePayments: (outcome: "settled" | "reopened", count: number) => void;
  /** Counts credited top-ups, and failed polls of the chain. */
  readonly observeTopups: (outcome: "credited" | "failed", count: number) => void;
  /** Counts jobs that maintenance found. */
  readonly observeJobs: (outcome: RecoveredJob) => void;
  /** Counts lines in batches of providers that have ended. */
  readonly observeProviderLines: (upstream: string, outcome: "answered" | "failed" | "not_run", lines: number) => void;
  /** Budget for large requests, uploads inside requests, and large answers of providers. */
  readonly memory: ByteBudget;
  /** Set only if maintenance is served: no other worker needs its key. */
  readonly executor: Executor | undefined;
  readonly webhooks: Webhooks;
  readonly webhookSender: WebhookSender;
  readonly secrets: Secrets;
  readonly providerKeys: ProviderKeys;
  readonly providerKeyChecker: ProviderKeyChecker;
  /** Work that no job waits for. */
  readonly background: Background;
  /** The time between two looks at a batch of a provider. */
  readonly providerPollMs: number;
  /** Nano-USD of an account's calls with own provider keys in a month whose fees are credited back. */
  readonly byokFreeNanoUsd: bigint;
  readonly readWorkers: () => Promise<readonly KnownWorker[]>;
  /** The attempts at upstreams by minute, of all processes. */
  readonly readAttempts: () => ReturnType<Traffic["readUpstreams"]>;
  /** The account whose webhook endpoints receive the events of upstreams. */
  readonly operatorEventsAccount: string | undefined;
  /** Aborts when this process shuts down. */
  readonly ending: AbortSignal;
  readonly tracing: Tracing | undefined;
}

export type Handler<Name extends JobName> = (
  deps: HandlerDeps,
  payload: JobPayload<Name>,
  delivery: Delivery,
) => Promise<void>;

/** Copies of a stored body in memory: its bytes, its text, the parsed value, and the provider's request. */
const bodyCopies = 4;

const noMemory = () =>
  noCapacity("There is not enough memory for a response of this size right now; nothing was charged.", 2);

/**
 * Runs a paid call within the worker's memory budget, which it holds until its answer is sent. A stored body that does not
 * fit is refused, except in a later delivery, because a provider may already be working on it.
 */
const paid =
  (handle: CallHandler): Handler<PaidJobName> =>
  async (deps, payload, delivery) => {
    const { files } = deps;
    const { body } = payload;
    const memory = deps.memory.share(payload.account);
    const uploads: Files["uploads"] = {
      ...files.uploads,
      resolve: (account, refs, signal) => files.uploads.resolve(account, refs, signal, memory),
    };
    try {
      const fits = "json" in body || memory.take(bodyCopies * body.bytes);
      if (!fits && delivery.count === 1)
        return await endWithoutRunning(
          deps,
          payload,
          noCapacity("There is not enough memory for a request of this size right now.", 2),
          delivery.trace,
        );
      const reserveMemory = (bytes: number) => {
        if (!memory.take(bytes)) throw noMemory();
      };
      const own = { ...deps, files: { ...files, uploads } };
      await runCall(own, payload, delivery, (call) => handle({ ...call, reserveMemory }));
    } finally {
      memory.close();
    }
  };

/** Checks whether calls may still run. */
function jobChecks({
  files,
  queues,
  replies,
  detachedCalls,
  batches,
}: Pick<HandlerDeps, "files" | "queues" | "replies" | "detachedCalls" | "batches">) {
  const isPending = async (requestId: string, account: string) => {
    const queued = pools.map((pool) => queues.isPending(pool, requestId));
    const job = detachedCalls.find(account, requestId).then((found) => found !== undefined && !isEnded(found));
    const pending = await Promise.all([...queued, job, files.uploads.isPending(account, requestId)]);
    return pending.includes(true);
  };
  /** Ask it after a lookup of jobs, because Redis may lose its data in between. */
  const mayBeLost = async (since: Date) => (await queues.emptySince()) > since.getTime();
  const livesOrHasJobs = async (instance: string) =>
    (await replies.instanceLives(instance)) || (await queues.hasJobsOf(instance));
  // Leases checked at the same time share one lookup of their instance. A finished lookup is not reused, because it may be
  // older than the lease.
  const lookups = new Map<string, Promise<boolean>>();
  const isServing = async (instance: string, since: Date) => {
    if (isProviderBatch(instance)) return batches.providerBatches.isOpen(instance);
    const lookup = lookups.get(instance) ?? livesOrHasJobs(instance).finally(() => lookups.delete(instance));
    lookups.set(instance, lookup);
    return (await lookup) || mayBeLost(since);
  };
  return { isPending, isServing, mayBeLost };
}

export const handlers: { readonly [Name in JobName]: Handler<Name> } = {
  chat: paid(chat),
  count: paid(count),
  embeddings: paid(embeddings),
  moderation: paid(moderation),
  rerank: paid(rerank),
  image: paid(image),
  media: paid(media),
  "send-webhooks": ({ webhookSender }, receiver) => webhookSender.drain(receiver),
  "check-provider-key": ({ providerKeyChecker }, { account, check }) => providerKeyChecker.run(account, check),
  "rewrap-secrets": rewrapSecrets,
  "validate-batches": validateBatches,
  "run-provider-batches": (deps) => runProviderBatches({ ...deps, works: { chat, embeddings } }),
  "enqueue-webhooks": enqueueWebhooks,
  "sweep-holds": async (deps) => {
    const { isPending, isServing } = jobChecks(deps);
    const swept = await deps.money.sweep(isPending, isServing);
    if (swept.settled + swept.captured > 0) deps.log.warn(swept, "overdue holds were ended");
  },
  "refund-undelivered": async (deps) => {
    const { money, replies } = deps;
    const { isPending, isServing, mayBeLost } = jobChecks(deps);
    const isPendingOrLost = async (requestId: string, account: string, since: Date) =>
      (await isPending(requestId, account)) || mayBeLost(since);
    await money.refundUndelivered({
      isAlive: replies.instanceLives,
      deliveredSince: replies.deliveredSince,
      endHoldsOf: (instance) => money.endHoldsOf(instance, isPendingOrLost, isServing),
    });
  },
  "apply-late-costs": async ({ money }) => {
    await money.settleLateCosts();
  },
  "checkpoint-ledger": async ({ money, ending }) => {
    await money.checkpoint(ending);
  },
  "check-ledger": checkLedger,
  "count-stored": countStored,
  "sum-usage": ({ money, ending }) => money.sumUsage(ending),
  "credit-fees": async ({ money, byokFeeBps, byokFreeNanoUsd, ending, log }) => {
    const terms = { feeBps: byokFeeBps, allowanceNanoUsd: byokFreeNanoUsd };
    const credits = await money.creditFees(terms, ending);
    if (credits > 0) log.info({ credits }, "fees of calls with own provider keys were credited");
  },
  "watch-balances": watchBalances,
  "watch-budgets": watchBudgets,
  "watch-key-expiry": watchKeyExpiry,
  "watch-provider-keys": watchProviderKeys,
  "watch-upstreams": watchUpstreams,
  "archive-ledger": async ({ archive, ending, log }) => {
    const archived = await archive.run(ending);
    if (archived > 0) log.info({ archived }, "the ledger was archived");
  },
  "restore-archives": ({ archive, ending }) => archive.restore(ending),
  "expire-files": async ({ files, log }) => {
    const { expired, removed } = await files.expire();
    if (expired + removed > 0) log.info({ expired, removed }, "files expired");
  },
  "end-detached-calls": endDetachedCalls,
  "expire-bodies": async ({ files, log }) => {
    const removed = await files.expireBodies();
    if (removed > 0) log.info({ removed }, "orphaned request bodies were removed");
  },
  "reconcile-payments": async ({ payments, observePayments, log }) => {
    const reconciled = await payments.x402?.reconcile();
    if (!reconciled || reconciled.settled + reconciled.reopened === 0) return;
    for (const outcome of ["settled", "reopened"] as const)
      if (reconciled[outcome] > 0) observePayments(outcome, reconciled[outcome]);
    log.warn(reconciled, "outcomes of payments were read from the chain");
  },
  "credit-topups": async ({ payments, webhooks, observeTopups, ending, clock, log }) => {
    const counts = await payments.topups?.creditArrived(ending, async (account, topup) => {
      await webhooks.record(topupCompleted(account, topup, new Date(clock.now())));
    });
    for (const outcome of ["credited", "failed"] as const)
      if (counts && counts[outcome] > 0) observeTopups(outcome, counts[outcome]);
    if (counts && counts.credited > 0) log.info(counts, "top-ups were credited");
  },
  "tidy-payments": async ({ payments, log }) => {
    const removed = await payments.unused.removeSpent();
    if (removed > 0) log.info({ removed }, "accounts of payments were removed");
  },
  "gather-buybacks": async ({ payments, log }) => {
    const gathered = await payments.buyback.gather();
    if (gathered.due > 0) log.info(gathered, "buybacks are due");
  },
  "execute-buybacks": async ({ payments, executor, ending, log }) => {
    if (!executor) return;
    const executed = await payments.buyback.execute(executor, ending);
    if (executed.done > 0) log.info({ ...executed, executor: executor.name }, "buybacks were executed");
  },
};
