import {
  isEnded,
  maxLineBytes,
  parseLine,
  readLines,
  type StoredBatch,
  type StoredLine,
  type StoredProviderBatch,
} from "#batches";
import { noCapacity, ServiceError } from "#errors";
import type { PaidCall } from "#jobs";
import { longLeaseOf } from "#money";
import { randomBase62 } from "#platform/ids";
import { UpstreamFailure } from "../providers/index.ts";
import type { AnswerRequest, BatchContext, BatchRequest, BatchResult } from "../providers/provider.ts";
import type { CallHandler, RunCallDeps, Work } from "../run-call/context.ts";
import { HandedOver, runCall } from "../run-call.ts";
import type { BatchUpstream } from "../upstreams/in-batch.ts";

/** A provider that fails this often does not get the batch. */
const maxSubmissions = 5;
const submitPauseMs = 30_000;
/** A provider has this long to end a batch that was cancelled. */
const cancelMs = 10 * 60_000;
/** Without results by then, the lines of a batch that was given up are run otherwise. */
const lastLookMs = 45 * 60_000;
/** One request to the provider, and one that carries all lines or results. */
const requestMs = 60_000;
const transferMs = 15 * 60_000;
/** The job that takes steps ends then, and is scheduled again. */
const runMs = 10_000;
/** A worker without the upstream leaves a batch to others for this long. */
const noUpstreamMs = 10 * 60_000;
/** Lines that are converted or captured at once, and the bytes of results. */
const atOnce = 64;
const atOnceBytes = 16 * 1024 * 1024;
const renewMs = 5_000;
const jitter = 0.2;
/** Requests are in memory until they are sent. Lines beyond this run by themselves. */
const maxRequestBytes = 64 * 1024 * 1024;

export interface ProviderBatchDeps extends RunCallDeps {
  readonly ending: AbortSignal;
  /** The time between two looks at a batch. */
  readonly providerPollMs: number;
  readonly observeProviderLines: (upstream: string, outcome: "answered" | "failed" | "not_run", lines: number) => void;
  readonly works: Readonly<Record<StoredProviderBatch["job"], CallHandler>>;
}

const notRun = () => noCapacity("The provider's batch did not run this line.", 1);
const customIdOf = ({ _id }: StoredProviderBatch, { line }: StoredLine) => `${_id}-${line}`;
const hasResult = ({ answer, error }: StoredLine) => answer !== undefined || error !== undefined;

/** Another worker has the claim. */
class Lost extends Error {
  override readonly name = "Lost";
}

/** Works at the batches of lines at providers that are due, one after the other: submits them, looks at them, ends them. */
export async function runProviderBatches(deps: ProviderBatchDeps): Promise<void> {
  const { batches, ending, log } = deps;
  const { providerBatches } = batches;
  const by = `wrk_${randomBase62(20)}`;
  const until = deps.clock.now() + runMs;
  while (!ending.aborted && deps.clock.now() < until) {
    const claimed = await providerBatches.claim(by);
    if (!claimed) return;
    try {
      await workAt(deps, claimed, await batches.find(claimed.account, claimed.batch));
    } catch (error) {
      if (error instanceof Lost) continue;
      const message = error instanceof UpstreamFailure ? error.message : error;
      log.warn({ err: message, batch: claimed.batch, providerBatch: claimed._id }, "a provider's batch has to wait");
      await providerBatches.release(claimed, deps.providerPollMs).catch(() => undefined);
    }
  }
}

/** Takes the next step of one batch. Whatever it did is done again if the process dies. */
async function workAt(deps: ProviderBatchDeps, claimed: StoredProviderBatch, parent: StoredBatch | null) {
  const { batches, money, files, clock, log, ending, providerPollMs } = deps;
  const { providerBatches, lines } = batches;
  const { account, _id, job, status, providerId, submittingAt, tries, cancelledAt } = claimed;
  const upstream = deps.upstreams.inBatch(claimed.upstream);
  const isWanted = parent?.status === "in_progress" && clock.now() < claimed.giveUpAt.getTime();
  const captured = new Set<string>();
  let renewedAt = clock.now();

  const within = (ms: number): BatchContext => ({ signal: AbortSignal.any([ending, AbortSignal.timeout(ms)]), log });

  async function keepClaim(set: Partial<StoredProviderBatch> = {}): Promise<void> {
    ending.throwIfAborted();
    renewedAt = clock.now();
    if (!(await providerBatches.renew(claimed, set))) throw new Lost();
  }
  const keepClaimIfDue = () => (clock.now() - renewedAt < renewMs ? undefined : keepClaim());

  /** Keeps the claim while the provider is waited for. */
  async function waitFor<T>(work: Promise<T>): Promise<T> {
    const stop = clock.every(renewMs, () => void providerBatches.renew(claimed).catch(() => undefined));
    try {
      return await work;
    } finally {
      stop();
    }
  }

  /** Runs the call of a line by `work`. A line that has a result is only captured. */
  async function runBy(work: Work, line: StoredLine, json: string, served?: object): Promise<void> {
    const payload = { ...(JSON.parse(line.payload ?? "{}") as PaidCall), body: { json } };
    const own = { ...deps, upstreams: { ...deps.upstreams, ...served } };
    await runCall(own, payload, { count: hasResult(line) ? 2 : 1, isShared: false }, work);
    captured.add(line._id);
  }

  /** Runs the call of a line, whose one request is answered by `send`. */
  const run = (line: StoredLine, json: string, send: AnswerRequest): Promise<void> =>
    runBy(
      // Its answer comes from the file of results.
      (call) => deps.works[job]({ ...call, reserveMemory: () => {} }),
      line,
      json,
      upstream?.through(send, submittingAt?.getTime() ?? clock.now()),
    );

  /** The request as the provider gets it. Undefined for a line that cannot be converted: it has ended with its error. */
  async function requestOf(line: StoredLine, json: string): Promise<BatchRequest | undefined> {
    let request: BatchRequest | undefined;
    const take: AnswerRequest = async ({ path, json: body }) => {
      request = { customId: customIdOf(claimed, line), path, body: { ...body } };
      throw new HandedOver("the provider's batch has the call");
    };
    await run(line, json, take).catch((error: unknown) => {
      if (!(error instanceof HandedOver)) throw error;
    });
    return request;
  }

  /** Yields lines with the JSON of their calls, in the order of the file, several at once. */
  async function* read(wanted: readonly StoredLine[]): AsyncGenerator<readonly (readonly [StoredLine, string])[]> {
    const [first] = wanted;
    if (!parent || !first) return;
    const byNumber = new Map(wanted.map((line) => [line.line, line]));
    const file = await files.batchFiles.find(account, parent.inputFile);
    let group: (readonly [StoredLine, string])[] = [];
    for await (const each of readLines(files.batchFiles.open(file, first.byte), first, maxLineBytes)) {
      const line = byNumber.get(each.line);
      if (line) group.push([line, parseLine(parent, each.content).text]);
      byNumber.delete(each.line);
      if (group.length < atOnce && byNumber.size > 0) continue;
      yield group;
      group = [];
      if (byNumber.size === 0) return;
      await keepClaimIfDue();
    }
  }

  /** The requests of all lines that go to the same path, within the limit. */
  async function requests(): Promise<readonly BatchRequest[]> {
    const wanted = (await lines.ofProviderBatch(claimed)).filter((line) => !hasResult(line));
    const found: BatchRequest[] = [];
    let bytes = 0;
    for await (const group of read(wanted))
      for (const request of await Promise.all(group.map(([line, json]) => requestOf(line, json)))) {
        if (!request || request.path !== (found[0] ?? request).path) continue;
        bytes += JSON.stringify(request.body).length;
        if (bytes <= maxRequestBytes) found.push(request);
      }
    return found;
  }

  async function submit({ batches: provider }: BatchUpstream): Promise<void> {
    const found = submittingAt && (await provider.find?.(_id, submittingAt.getTime(), within(requestMs)));
    if (found !== undefined)
      return providerBatches.release(claimed, isWanted ? providerPollMs : 0, {
        status: "submitted",
        providerId: found,
      });
    if (!isWanted) return end();
    const submitted = tries < maxSubmissions ? await requests() : [];
    if (submitted.length === 0) return end();
    await keepClaim({ status: "submitting", submittingAt: new Date(clock.now()), tries: tries + 1 });
    try {
      const given = await waitFor(provider.submit({ id: _id, lines: submitted }, within(transferMs)));
      await providerBatches.release(claimed, providerPollMs, { status: "submitted", providerId: given });
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      const { kind, message, retryAfterMs = 0 } = error;
      log.warn({ kind, err: message, providerBatch: _id, upstream: claimed.upstream }, "a batch was not submitted");
      if (kind === "refused" || kind === "misconfigured") return end();
      await providerBatches.release(claimed, Math.max(submitPauseMs, retryAfterMs));
    }
  }

  /** A request that fails is repeated at the next look. */
  const failed = (error: unknown): undefined => {
    const { name, message } = error as Error;
    if (!(error instanceof UpstreamFailure) && name !== "TimeoutError") throw error;
    log.warn({ err: message, providerBatch: _id, upstream: claimed.upstream }, "a provider did not answer for a batch");
  };

  async function look(id: string, { batches: provider }: BatchUpstream): Promise<void> {
    const now = clock.now();
    const hasEnded = await waitFor(provider.hasEnded(id, within(requestMs))).catch(failed);
    if (hasEnded) {
      await takeResults(provider.results(id, within(transferMs)));
      await end();
      return provider.discard(id, within(requestMs)).catch(failed);
    }
    if (cancelledAt && now > cancelledAt.getTime() + cancelMs) return end();
    const pauseMs = providerPollMs * (1 - jitter + 2 * jitter * Math.random());
    if (isWanted) {
      if (hasEnded === false) await batches.noteProgress(account, claimed.batch, { hasEnded: false });
      return providerBatches.release(claimed, pauseMs);
    }
    if (!cancelledAt) await waitFor(provider.cancel(id, within(requestMs))).catch(failed);
    await providerBatches.release(claimed, pauseMs / 4, { cancelledAt: cancelledAt ?? new Date(now) });
  }

  async function takeResults(results: AsyncIterable<BatchResult>): Promise<void> {
    // Answers come in any order, and are completed with what their calls asked for.
    const asked = new Map<string, readonly [StoredLine, string]>();
    for await (const group of read(await lines.ofProviderBatch(claimed)))
      for (const [line, json] of group) asked.set(customIdOf(claimed, line), [line, json]);
    let running: Promise<void>[] = [];
    let runningBytes = 0;
    for await (const { customId, answer, bytes } of results) {
      const [line, json] = asked.get(customId) ?? [];
      if (!line || json === undefined || !answer) continue;
      asked.delete(customId);
      deps.observeProviderLines(claimed.upstream, answer instanceof UpstreamFailure ? "failed" : "answered", 1);
      const send = () => (answer instanceof UpstreamFailure ? Promise.reject(answer) : Promise.resolve(answer));
      running.push(run(line, json, send));
      runningBytes += bytes;
      if (running.length < atOnce && runningBytes < atOnceBytes) continue;
      await Promise.all(running);
      [running, runningBytes] = [[], 0];
      // A line that another worker ends must not be answered here.
      await keepClaim();
    }
    await Promise.all(running);
  }

  /** Ends the lines without a result, so that nothing is captured later, and gives back what the batch does not need. */
  async function end(): Promise<void> {
    const rest = (await lines.ofProviderBatch(claimed)).filter((line) => !captured.has(line._id));
    for (let from = 0; from < rest.length; from += atOnce) {
      const group = rest.slice(from, from + atOnce);
      await Promise.all(group.map((line) => runBy(() => Promise.reject(notRun()), line, "{}")));
      await keepClaimIfDue();
    }
    const unrun = rest.filter((line) => !hasResult(line));
    if (unrun.length > 0) deps.observeProviderLines(claimed.upstream, "not_run", unrun.length);
    await money.closeLease(account, longLeaseOf(_id));
    await providerBatches.end(claimed);
    if (parent && !isEnded(parent)) await batches.noteProgress(account, claimed.batch, { hasEnded: true });
  }

  if (clock.now() > claimed.giveUpAt.getTime() + lastLookMs) return end();
  if (!upstream) {
    const isSent = submittingAt !== undefined;
    const waitsUntil = isSent ? claimed.giveUpAt.getTime() : claimed.createdAt.getTime() + noUpstreamMs;
    return (isWanted || isSent) && clock.now() < waitsUntil ? providerBatches.release(claimed, providerPollMs) : end();
  }
  const isSubmitted = status === "submitted" && providerId !== undefined;
  try {
    if (isSubmitted) return await look(providerId, upstream);
    return isWanted || submittingAt ? await submit(upstream) : await end();
  } catch (error) {
    // The file of the batch was deleted, so that its lines can neither be submitted nor answered.
    if (!(error instanceof ServiceError) || ![404, 410].includes(error.status)) throw error;
    return end();
  }
}
