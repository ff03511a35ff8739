import type { Catalog, Model, Tier, Usage } from "#catalog";
import { noCapacity, ServiceError, toServiceError, upstreamTimeout } from "#errors";
import type { Files, ProviderJob } from "#files";
import type { IdempotencyStore, StoredCall } from "#idempotency";
import type { Cancellations, Outcome, PaidCall, Replies, Reply } from "#jobs";
import type { Decision, LedgerEntry, Money } from "#money";
import { type Clock, sleep } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { completionTokens, promptTokens } from "./conversion/index.ts";
import type { Counting } from "./counting/index.ts";
import { type AbortCause, Aborted, isHandedOver, type Running } from "./running.ts";
import type { Upstreams } from "./upstreams/index.ts";

export interface CallDeps {
  readonly catalog: Catalog;
  readonly upstreams: Upstreams;
  readonly money: Money;
  readonly files: Files;
  readonly idempotency: IdempotencyStore;
  readonly replies: Replies;
  readonly cancellations: Cancellations;
  readonly running: Running;
  readonly counting: Counting;
  readonly clock: Clock;
  readonly log: Logger;
}

/** One attempt, as the work of a pool sees it. */
export interface Attempt {
  readonly payload: PaidCall;
  readonly catalog: Catalog;
  readonly model: Model;
  readonly request: Readonly<Record<string, unknown>>;
  /** Aborts when the work is to stop. */
  readonly signal: AbortSignal;
  /** Aborts when the caller has disconnected while a provider works. The work decides what is finished all the same. */
  readonly disconnected: AbortSignal;
  readonly reply: Reply;
  readonly upstreams: Upstreams;
  readonly files: Files;
  readonly counting: Counting;
  /** What an earlier delivery submitted to a provider, and was not there to see the end of. */
  readonly job: ProviderJob | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Filled as the work goes on, and written to the ledger however it ends. */
  readonly progress: Progress;
}

export interface Progress {
  /** Whose call it is: an upstream's failures are counted by it. */
  readonly account: string;
  upstream?: string;
  attempts: number;
  firstTokenAt?: number;
  /** What closes a stream that failed, where only its writer can tell it. */
  fail?: (error: ServiceError) => string | undefined;
  /** The provider's job: whoever gets the call next goes on with it. */
  job?: string;
  /** What a stream is charged for that ends early: from outside, or else by a failure. */
  countCut?: (cause: AbortCause | undefined) => Promise<Counted | undefined>;
}

export interface Counted {
  readonly usage: Usage;
  /** The provider gave no usage. */
  readonly estimated: boolean;
}

interface Priceable extends Counted {
  /** Where the price depends on what was asked for: the model's own parameters. */
  readonly input?: Readonly<Record<string, unknown>>;
}

export interface Answer extends Priceable {
  /** The whole body, or the last events of a stream, in the caller's format. */
  readonly text: string;
  /** Headers of a whole body: they are stored with it under an `Idempotency-Key`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The attempt ends here and decides nothing: the next delivery goes on with the provider's job. */
export class HandedOver extends Error {
  override readonly name = "HandedOver";
}

export type Work = (attempt: Attempt) => Promise<Answer>;

/** How an attempt ended: what is decided, and what the caller is told once it is. Resolves false if nobody was there. */
interface Ending {
  readonly decision: Decision;
  /** It tells the answer that is kept, which may have been decided by a delivery that did not live to tell it. */
  readonly kept?: boolean;
  tell(costNanoUsd: bigint): Promise<boolean>;
}

const totalTokens = (usage: Usage) => promptTokens(usage) + completionTokens(usage);

/**
 * One delivery of a paid call: at most one attempt, one decision, one application, whatever happens (ARCHITECTURE,
 * sections 3 and 5). Resolving acknowledges the job. A later delivery only ends what an earlier one began: it tells the
 * answer that was kept, or goes on with the provider's job. Throws `HandedOver` to be delivered again.
 */
export async function runCall(deps: CallDeps, payload: PaidCall, delivery: number, work: Work): Promise<void> {
  const { replies, running, clock, money } = deps;
  const { requestId, replyTo, account } = payload;
  const isKept = payload.idempotencyKeyId !== undefined;
  const earlier = delivery > 1 ? await leftBehind(deps, payload) : (await isGivenUp(deps, payload)) ? undefined : {};
  if (!earlier)
    return endUnrun(
      deps,
      payload,
      noCapacity("The worker that ran this call died; nothing was charged. Repeat it.", 1),
    );

  // Watched before it is asked for: a cancellation between the two is not lost.
  const { deadlineAt } = payload;
  const attempt = running.begin({ requestId, deadlineAt, ...(!isKept && { replyTo }) });
  const progress: Progress = { account, attempts: 0, ...(earlier.job && { job: earlier.job.job }) };
  // Once a provider works, it is paid for. Before that, and where the call is free, nothing is worth finishing.
  attempt.disconnected.addEventListener("abort", () => {
    if (progress.attempts === 0 || payload.held === "0") attempt.abort("disconnected");
  });
  try {
    // A job that waits is taken back, not cancelled: that it was cancelled just before this line is rare, and not waited for.
    deps.cancellations.notice(requestId).then(
      (notice) => (notice === "cancelled" ? attempt.abort("ended") : notice && attempt.disconnect()),
      (error: Error) => deps.log.warn({ err: error.message, requestId }, "asking for a cancellation"),
    );
    const onGone = () => {
      if (!isKept) attempt.abort("gone");
    };
    if (!isKept && !(await replies.instanceLives(replyTo))) onGone();
    if (clock.now() >= deadlineAt) attempt.abort("deadline");
    const reply = replies.open(replyTo, requestId, onGone);
    const ending = await attemptCall(deps, payload, { ...attempt, reply, progress, work, earlier });
    const { won, entry } = await money.decide(ending.decision);
    const isOurs = won || (ending.kept && entry.request?.status === "succeeded");
    const delivered = isOurs
      ? await ending.tell(entry.costNanoUsd)
      : await tellEnded(deps, payload, entry, elsewhere());
    await money.apply({ account, requestId, heldNanoUsd: BigInt(payload.held), costNanoUsd: entry.costNanoUsd });
    // A JSON answer costs nothing if its API instance died before it could take it.
    if (!delivered && won && !payload.stream && !isKept && entry.costNanoUsd > 0n)
      await money.refund(account, requestId);
  } finally {
    attempt.end();
  }
}

/**
 * The call was decided elsewhere. Whoever did may be gone without a word to the caller, who would wait for ever. An answer
 * that is charged and comes after this error finds its call closed, so the API refunds it.
 */
const tellEnded = (
  { replies }: CallDeps,
  { replyTo, requestId }: PaidCall,
  { costNanoUsd }: LedgerEntry,
  error: ServiceError,
) => replies.late(replyTo, requestId, error, costNanoUsd > 0n ? { answerLost: true } : undefined);

const elsewhere = () => noCapacity("The call was ended elsewhere; nothing was charged. Repeat it.", 1);

/** What an earlier delivery left to go on with. */
interface Earlier {
  readonly answer?: StoredCall;
  readonly job?: ProviderJob;
}

const lookAgainMs = 500;

/** MongoDB is waited for, as with every decision: what is not seen now would be lost. */
async function leftBehind(deps: CallDeps, payload: PaidCall): Promise<Earlier | undefined> {
  const { clock, log } = deps;
  for (;;) {
    try {
      return await look(deps, payload);
    } catch (error) {
      if (clock.now() >= payload.deadlineAt) throw error;
      log.warn(
        { err: (error as Error).message, requestId: payload.requestId },
        "what was left behind is not known yet",
      );
      await sleep(clock, lookAgainMs);
    }
  }
}

async function look({ idempotency, money, files }: CallDeps, payload: PaidCall): Promise<Earlier | undefined> {
  const { requestId, idempotencyKeyId } = payload;
  const answer = idempotencyKeyId === undefined ? undefined : await idempotency.stored(idempotencyKeyId, requestId);
  if (answer) return { answer };
  if (await money.entry(requestId)) return undefined;
  const job = await files.generated.findProviderJob(requestId);
  return job && { job };
}

/** Its instance was taken for dead, and whoever has its key now has ended it. Where MongoDB is away the decision tells. */
const isGivenUp = async ({ money }: CallDeps, { idempotencyKeyId, requestId }: PaidCall): Promise<boolean> =>
  idempotencyKeyId !== undefined && (await money.entry(requestId).catch(() => undefined)) !== undefined;

/** A call that is not run, or not run again: decided 0, or by the entry that stands; the caller hears of it. */
export async function endUnrun(deps: CallDeps, payload: PaidCall, error: ServiceError): Promise<void> {
  const { money, log, clock } = deps;
  const { account, requestId, stream, idempotencyKeyId } = payload;
  const progress = { account, attempts: 0 };
  const call = describe(payload, progress, clock.now(), clock.now());
  const { entry } = await money.release(call, { status: "failed", error: error.code });
  const answerLost = entry.costNanoUsd > 0n;
  log.warn({ requestId, answerLost, code: error.code }, "a call ended without being run here");
  const told = await tellEnded(deps, payload, entry, error);
  // What is kept under a key is there for whoever asks again.
  if (!told && answerLost && !stream && idempotencyKeyId === undefined) await money.refund(account, requestId);
}

interface Begun extends Pick<Attempt, "signal" | "disconnected" | "reply" | "progress"> {
  readonly work: Work;
  readonly earlier: Earlier;
}

async function attemptCall(deps: CallDeps, payload: PaidCall, begun: Begun): Promise<Ending> {
  const { signal, disconnected, reply, progress, work, earlier } = begun;
  const { catalog, upstreams, files, counting, clock } = deps;
  const log = deps.log.child({ requestId: payload.requestId });
  const startedAt = clock.now();
  const described = () => describe(payload, progress, startedAt, clock.now());
  const model = catalog.find(payload.model);
  try {
    signal.throwIfAborted();
    if (!model) throw noCapacity(`This worker does not know the model '${payload.model}'.`);
    const run = async () => {
      const request = JSON.parse(await bodyOf(deps.files, payload, signal)) as Readonly<Record<string, unknown>>;
      const { job } = earlier;
      return work({
        payload,
        catalog,
        model,
        request,
        signal,
        disconnected,
        reply,
        upstreams,
        files,
        counting,
        job,
        clock,
        log,
        progress,
      });
    };
    const answered = async () => {
      const { text, headers, ...answer } = await run();
      const charge = priced(catalog, payload.tier, model, answer);
      return keep(deps, payload, { text, ...charge, ...(headers && { headers }) }, signal);
    };
    const { text, headers, ...charge } = earlier.answer ?? (await answered());
    if (headers) reply.announce(headers);
    const decision: Decision = { ...described(), status: "succeeded", ...charge };
    const tokens = totalTokens(charge.usage);
    return {
      decision,
      kept: payload.idempotencyKeyId !== undefined,
      tell: (cost) => reply.final(text, { cost: String(cost), tokens }),
    };
  } catch (thrown) {
    if (progress.job !== undefined && isHandedOver(signal)) throw new HandedOver("the provider's job goes on");
    const { status, error, cause } = verdict(thrown, signal);
    if (error.code === "internal_error") log.error({ err: thrown }, "a call failed by a defect");
    else log.info({ code: error.code, ...reasonOf(error), ...progress }, "a call failed");
    const counted = cause !== undefined && ourFault.has(cause) ? undefined : await countCut(begun, cause);
    const charge = model && counted ? priced(catalog, payload.tier, model, counted) : {};
    const decision: Decision = { ...described(), ...free(status, error), ...charge };
    const ending = progress.fail?.(error);
    const outcome: Outcome = { tokens: counted ? totalTokens(counted.usage) : 0, ...(ending && { ending }) };
    return { decision, tell: (cost) => reply.error(error, { ...outcome, cost: String(cost) }) };
  }
}

/** Exactly what Redis took of a stream is charged: wait until that is known. */
async function countCut({ progress, reply }: Begun, cause: AbortCause | undefined): Promise<Counted | undefined> {
  if (!progress.countCut) return undefined;
  await reply.flush().catch(() => undefined);
  return progress.countCut(cause);
}

function priced(catalog: Catalog, tier: Tier, model: Model, { usage, estimated, input }: Priceable) {
  const billed = catalog.billed(model, usage, input);
  return { usage: billed, estimated, costNanoUsd: catalog.cost(model, billed, tier, input) };
}

const keepAgainMs = 500;

/**
 * Before it is decided: so no crash can leave a charge without its answer. Resolves with the one that counts: a worker
 * that was taken for dead may have been faster.
 */
async function keep(
  deps: CallDeps,
  { idempotencyKeyId, requestId }: PaidCall,
  answer: StoredCall,
  signal: AbortSignal,
): Promise<StoredCall> {
  if (idempotencyKeyId === undefined) return answer;
  const { idempotency, clock, log } = deps;
  for (;;) {
    try {
      if (await idempotency.store(idempotencyKeyId, requestId, answer)) return answer;
      const first = await idempotency.stored(idempotencyKeyId, requestId);
      if (first) return first;
      throw noCapacity("Another request has the Idempotency-Key by now.", 1);
    } catch (error) {
      if (error instanceof ServiceError) throw error;
      log.warn({ err: (error as Error).message, requestId }, "an answer is not kept yet");
      await sleep(clock, keepAgainMs, signal);
    }
  }
}

async function bodyOf(files: Files, { body, requestId }: PaidCall, signal: AbortSignal): Promise<string> {
  if ("json" in body) return body.json;
  try {
    return await files.getBody(requestId, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw noCapacity("Storage for large requests is away; nothing was charged.", 5, error);
  }
}

/** These cost the caller nothing, whatever the provider did. */
const ourFault: ReadonlySet<AbortCause> = new Set(["lost", "shutdown"]);

/** What the thrown thing means for the ledger and for the caller. `cause`: the attempt was ended from outside. */
function verdict(thrown: unknown, signal: AbortSignal) {
  const aborted = [signal.reason, thrown].find((each) => each instanceof Aborted);
  const cause = aborted?.cause;
  switch (cause) {
    case "disconnected":
    case "ended":
    case "gone":
      // An instance whose caller disconnected still has the call open, and gives back what the call took when it hears
      // of the end. One that seemed gone may only have stalled.
      return { status: "cancelled" as const, error: noCapacity("Contact was lost; repeat the call.", 1), cause };
    case "lost": {
      const error = noCapacity("The worker lost this call; nothing was charged. Repeat it.", 1);
      return { status: "failed" as const, error, cause };
    }
    case "deadline": {
      const error = upstreamTimeout("The call ran out of time.", { shouldRetry: false });
      return { status: "failed" as const, error, cause };
    }
    case "shutdown": {
      const error = noCapacity("The worker is shutting down; repeat the call.", 1);
      return { status: "failed" as const, error, cause };
    }
    case undefined:
      return { status: "failed" as const, error: toServiceError(thrown), cause };
  }
}

/** A provider's refusal may quote the prompt, and no prompt goes into a log. */
const reasonOf = ({ code, message }: ServiceError) => (code === "invalid_value" ? {} : { reason: message });

const free = (status: "failed" | "cancelled", error: ServiceError) => ({
  status,
  ...(status === "failed" && { error: error.code }),
  costNanoUsd: 0n,
  usage: {},
  estimated: false,
});

/** What the ledger keeps of a call however it ended. */
const describe = (payload: PaidCall, progress: Progress, startedAt: number, now: number) => ({
  account: payload.account,
  requestId: payload.requestId,
  key: payload.keyId,
  endpoint: payload.endpoint,
  model: payload.model,
  heldNanoUsd: BigInt(payload.held),
  buybackToken: payload.buybackToken,
  ...(progress.upstream !== undefined && { upstream: progress.upstream }),
  attempts: progress.attempts,
  queueMs: startedAt - payload.acceptedAt,
  ...(progress.firstTokenAt !== undefined && { firstTokenMs: progress.firstTokenAt - payload.acceptedAt }),
  totalMs: now - payload.acceptedAt,
});
