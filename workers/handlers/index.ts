import { noCapacity } from "#errors";
import type { Files } from "#files";
import type { JobName, JobPayload, PaidCall, PaidJobName, Queues } from "#jobs";
import type { Payments } from "#payments";
import type { Background } from "#platform/background";
import type { ByteBudget, ByteShare } from "#platform/byte-budget";
import type { Executor } from "../executors/index.ts";
import { type Answer, type Attempt, type CallDeps, endUnrun, runCall } from "../run-call.ts";
import { chat } from "./chat.ts";
import { checkpointLedger } from "./checkpoint-ledger.ts";
import { count } from "./count.ts";
import { embeddings } from "./embeddings.ts";
import { executeBuybacks } from "./execute-buybacks.ts";
import { expireBodies } from "./expire-bodies.ts";
import { expireFiles } from "./expire-files.ts";
import { gatherBuybacks } from "./gather-buybacks.ts";
import { image, media } from "./generate.ts";
import { reconcilePayments } from "./reconcile-payments.ts";
import { sweepHolds } from "./sweep-holds.ts";
import { tidyPayments } from "./tidy-payments.ts";

export interface HandlerDeps extends CallDeps {
  readonly queues: Queues;
  readonly payments: Payments;
  /** For uploads inside requests and files inside answers. */
  readonly memory: ByteBudget;
  /** Only where maintenance is served: nobody else needs its key. */
  readonly executor: Executor | undefined;
  /** What no job waits for. */
  readonly background: Background;
  /** Aborts when this process is told to end. */
  readonly ending: AbortSignal;
}

/** `delivery` counts from 1: a job that comes again was with a worker that died. */
export type Handler<Name extends JobName> = (
  deps: HandlerDeps,
  payload: JobPayload<Name>,
  delivery: number,
) => Promise<void>;

/** Of a body from storage: its bytes, its text, what is parsed of it, and what goes to the provider. */
const bodyCopies = 4;

/**
 * What a call holds in memory is given back when it has ended and its answer is on its way. A body for which there is no
 * room is not read; one of a job that is delivered again is, because the provider may have work of it.
 */
async function withMemory(
  deps: HandlerDeps,
  payload: PaidCall,
  delivery: number,
  run: (deps: HandlerDeps, memory: ByteShare) => Promise<void>,
) {
  const memory = deps.memory.share(payload.account);
  const { files } = deps;
  const uploads: Files["uploads"] = {
    ...files.uploads,
    resolve: (account, refs, signal) => files.uploads.resolve(account, refs, signal, memory),
  };
  const { body } = payload;
  try {
    const fits = "json" in body || memory.take(bodyCopies * body.bytes);
    if (fits || delivery > 1) await run({ ...deps, files: { ...files, uploads } }, memory);
    else await endUnrun(deps, payload, noCapacity("There is no memory for so large a request right now.", 2));
  } finally {
    memory.close();
  }
}

const paid =
  (work: (attempt: Attempt, memory: ByteShare) => Promise<Answer>): Handler<PaidJobName> =>
  (deps, payload, delivery) =>
    withMemory(deps, payload, delivery, (deps, memory) =>
      runCall(deps, payload, delivery, (attempt) => work(attempt, memory)),
    );

/** Every job's handler, all on one screen. */
export const handlers: { readonly [Name in JobName]: Handler<Name> } = {
  chat: paid(chat),
  count: paid(count),
  embeddings: paid(embeddings),
  image: paid(image),
  media: paid(media),
  "sweep-holds": (deps) => sweepHolds(deps),
  "checkpoint-ledger": (deps) => checkpointLedger(deps),
  "expire-files": (deps) => expireFiles(deps),
  "expire-bodies": (deps) => expireBodies(deps),
  "reconcile-payments": (deps) => reconcilePayments(deps),
  "tidy-payments": (deps) => tidyPayments(deps),
  "gather-buybacks": (deps) => gatherBuybacks(deps),
  "execute-buybacks": (deps) => executeBuybacks(deps),
};
