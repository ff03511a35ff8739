import type { Catalog, Model, Usage } from "#catalog";
import { noCapacity, type ServiceError, toServiceError, upstreamTimeout } from "#errors";
import type { Files } from "#files";
import type { Cancellations, Outcome, PaidCall, Replies, Reply } from "#jobs";
import type { Decision, Money } from "#money";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { Aborted, type Running } from "./running.ts";
import type { Upstreams } from "./upstreams.ts";

export interface CallDeps {
  readonly catalog: Catalog;
  readonly upstreams: Upstreams;
  readonly money: Money;
  readonly files: Files;
  readonly replies: Replies;
  readonly cancellations: Cancellations;
  readonly running: Running;
  readonly clock: Clock;
  readonly log: Logger;
}

/** One attempt, as the work of a pool sees it. */
export interface Attempt {
  readonly payload: PaidCall;
  readonly model: Model;
  readonly request: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
  readonly reply: Reply;
  readonly upstreams: Upstreams;
  readonly clock: Clock;
  readonly log: Logger;
  /** Filled as the work goes on, and written to the ledger however it ends. */
  readonly progress: Progress;
}

export interface Progress {
  upstream?: string;
  attempts: number;
  firstTokenAt?: number;
  /** What has been delivered of a stream that is cut off; absent: nothing is charged. */
  delivered?: () => Counted | undefined;
}

export interface Counted {
  readonly usage: Usage;
  /** The provider gave no usage. */
  readonly estimated: boolean;
}

export interface Answer extends Counted {
  /** The whole body, or the last events of a stream, in the caller's format. */
  readonly text: string;
}

export type Work = (attempt: Attempt) => Promise<Answer>;

/** How an attempt ended: what is decided, and what the caller is told once it is. Resolves false if nobody was there. */
interface Ending {
  readonly decision: Decision;
  tell(costNanoUsd: bigint): Promise<boolean>;
}

const totalTokens = (usage: Usage) =>
  (usage.input ?? 0) +
  (usage.cached_input ?? 0) +
  (usage.cache_write ?? 0) +
  (usage.audio_input ?? 0) +
  (usage.output ?? 0) +
  (usage.audio_output ?? 0);

/**
 * One delivery of a paid call: at most one attempt, one decision, one application, whatever happens (ARCHITECTURE,
 * sections 3 and 5). Resolving acknowledges the job.
 */
export async function runCall(deps: CallDeps, payload: PaidCall, delivery: number, work: Work): Promise<void> {
  const { replies, running, clock, money } = deps;
  const { requestId, replyTo, account } = payload;
  if (delivery > 1)
    return endUnrun(
      deps,
      payload,
      noCapacity("The worker that ran this call died; nothing was charged. Repeat it.", 1),
    );

  // Watched before it is asked for: a cancellation between the two is not lost.
  const attempt = running.begin(payload);
  try {
    // A job that waits is taken back, not cancelled: that it was cancelled just before this line is rare, and not waited for.
    deps.cancellations.isCancelled(requestId).then(
      (cancelled) => cancelled && attempt.abort("cancelled"),
      (error: Error) => deps.log.warn({ err: error.message, requestId }, "asking for a cancellation"),
    );
    if (!(await replies.instanceLives(replyTo))) attempt.abort("gone");
    if (clock.now() >= payload.deadlineAt) attempt.abort("deadline");
    const reply = replies.open(replyTo, requestId, () => attempt.abort("gone"));
    const ending = await attemptCall(deps, payload, reply, attempt.signal, work);
    const { won, entry } = await money.decide(ending.decision);
    const told = won ? await ending.tell(entry.costNanoUsd) : true;
    await money.apply({ account, requestId, heldNanoUsd: BigInt(payload.held), costNanoUsd: entry.costNanoUsd });
    // A JSON answer that nobody was there to take costs nothing, found out now or later.
    if (payload.stream || entry.costNanoUsd === 0n || !won) return;
    if (!told) return void (await money.refund(account, requestId));
    reply.onLost(() => {
      money.refund(account, requestId).catch((error: unknown) => deps.log.error({ err: error, requestId }, "refund"));
    });
  } finally {
    attempt.end();
  }
}

/** A call that is not run, or not run again: decided 0, or by the entry that stands; the caller hears of it. */
export async function endUnrun(deps: CallDeps, payload: PaidCall, error: ServiceError): Promise<void> {
  const { money, replies, log, clock } = deps;
  const { account, requestId, replyTo, stream } = payload;
  const progress = { attempts: 0 };
  const decision = { ...describe(payload, progress, clock.now(), clock.now()), ...free("failed", error) };
  const { entry } = await money.settle(decision);
  const answerLost = entry.costNanoUsd > 0n;
  log.warn({ requestId, answerLost, code: error.code }, "a call ended without being run here");
  const told = await replies.late(replyTo, requestId, error, answerLost ? { answerLost } : undefined);
  if (!told && answerLost && !stream) await money.refund(account, requestId);
}

async function attemptCall(
  deps: CallDeps,
  payload: PaidCall,
  reply: Reply,
  signal: AbortSignal,
  work: Work,
): Promise<Ending> {
  const { catalog, upstreams, clock } = deps;
  const log = deps.log.child({ requestId: payload.requestId });
  const startedAt = clock.now();
  const progress: Progress = { attempts: 0 };
  const described = () => describe(payload, progress, startedAt, clock.now());
  const costOf = (model: Model, usage: Usage) => catalog.cost(model, usage, payload.tier);
  const model = catalog.find(payload.model);
  try {
    signal.throwIfAborted();
    if (!model) throw noCapacity(`This worker does not know the model '${payload.model}'.`);
    const request = JSON.parse(await bodyOf(deps.files, payload, signal)) as Readonly<Record<string, unknown>>;
    const answer = await work({ payload, model, request, signal, reply, upstreams, clock, log, progress });
    const { usage, estimated } = answer;
    const decision: Decision = {
      ...described(),
      status: "succeeded",
      costNanoUsd: costOf(model, usage),
      usage,
      estimated,
    };
    const tokens = totalTokens(usage);
    return { decision, tell: (cost) => reply.final(answer.text, { cost: String(cost), tokens }) };
  } catch (thrown) {
    const { status, error, silent, free: nothing } = verdict(thrown, signal);
    if (error.code === "internal_error") log.error({ err: thrown }, "a call failed by a defect");
    else log.info({ code: error.code, ...reasonOf(error), ...progress }, "a call failed");
    // Exactly what Redis took of a stream is charged: wait until that is known.
    if (progress.delivered) await reply.flush().catch(() => undefined);
    const counted = nothing || !model ? undefined : progress.delivered?.();
    const charge = model && counted ? { ...counted, costNanoUsd: costOf(model, counted.usage) } : {};
    const decision: Decision = { ...described(), ...free(status, error), ...charge };
    const outcome: Outcome = { tokens: counted ? totalTokens(counted.usage) : 0 };
    return { decision, tell: async (cost) => silent || reply.error(error, { ...outcome, cost: String(cost) }) };
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

/** What the thrown thing means: for the ledger, for the caller, and whether anybody is there to be told. */
function verdict(thrown: unknown, signal: AbortSignal) {
  const cause = signal.reason instanceof Aborted ? signal.reason.cause : undefined;
  switch (cause) {
    case "cancelled":
    case "gone":
      // An instance whose caller left still has the call open, and gives back what the call took when it hears of the
      // end. One that seemed gone may only have stalled.
      return {
        status: "cancelled" as const,
        error: noCapacity("Contact was lost; repeat the call.", 1),
        silent: false,
        free: false,
      };
    case "lost":
      // For the queue this worker is dead, and a worker's death costs nothing. The next delivery tells the caller.
      return { status: "failed" as const, error: noCapacity("lost"), silent: true, free: true };
    case "deadline":
      return {
        status: "failed" as const,
        error: upstreamTimeout("The call ran out of time."),
        silent: false,
        free: true,
      };
    case "shutdown":
      return {
        status: "failed" as const,
        error: noCapacity("The worker is shutting down; repeat the call.", 1),
        silent: false,
        free: true,
      };
    case undefined:
      return { status: "failed" as const, error: toServiceError(thrown), silent: false, free: false };
  }
}

/** A maker's refusal may quote the prompt, and no prompt goes into a log. */
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
  ...(progress.upstream !== undefined && { upstream: progress.upstream }),
  attempts: progress.attempts,
  queueMs: startedAt - payload.acceptedAt,
  ...(progress.firstTokenAt !== undefined && { firstTokenMs: progress.firstTokenAt - payload.acceptedAt }),
  totalMs: now - payload.acceptedAt,
});
