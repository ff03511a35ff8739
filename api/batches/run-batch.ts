import {
  type Batches,
  type FileLine,
  isEnded,
  LineRefused,
  parseLine,
  resultOfUnrun,
  type StoredBatch,
  type StoredLine,
} from "#batches";
import { toServiceError } from "#errors";
import { jobCatalog } from "#jobs";
import type { Caller } from "#keys";
import { sleep } from "#platform/clock";
import { isBudgeted } from "../admission/admit.ts";
import { ownKeysFor } from "../admission/own-keys.ts";
import type { PaidRoute } from "../paid-route.ts";
import { type Admitted, isCall, takenOf } from "./admitted.ts";
import { createInput } from "./input.ts";
import { withoutLate } from "./late-lines.ts";
import type { LineCall, LineCallDeps, LineCalls, ReadLine } from "./line-calls.ts";
import { createProviderLines, type ProviderLines } from "./provider-lines.ts";
import { createPart, finishBatch, recordUnrun, retryAt } from "./recording.ts";
import { customIdOf, type Refusal, refusedLineOf } from "./refused-line.ts";
import { createUntoldEnds, type OpenLine } from "./untold-ends.ts";

/** Lines are admitted together, so that their holds, inserts and queue jobs are. */
const admitAtOnce = 64;
/** After fewer lines, the next ones wait for a moment, so that they are together. */
const beginAtLeast = 16;
const pollMs = 25;
const renewMs = 2_000;
const pauseMs = 5_000;
const limitedMs = 1_000;
const maxWaitMs = 10_000;
/** The pause of a batch whose next line has no slot. */
const fullMs = 100;
/** A result is recorded at once if many wait, and otherwise at intervals, of which the later ones are longer. */
const recordCount = 200;
const recordMs = { first: 1_000, later: 10_000, many: 100 };
/** A batch of which a provider has all that is left is looked at again after this time, or when there are results. */
const atProviderMs = { running: 60_000, ending: 5_000 };

/** Errors of an admission that end for all lines together. */
const pausing = ["insufficient_balance", "budget_exceeded", "account_frozen"];

export interface RunBatchDeps extends LineCallDeps {
  readonly batches: Batches;
  readonly calls: LineCalls;
  readonly routeOf: (endpoint: string) => PaidRoute | undefined;
  /** The number of lines of this batch that may begin now. */
  readonly allowed: () => number;
  /** The same for lines that a provider's batch takes, which need no worker now. */
  readonly paced: () => number;
  /** Aborts when this process shuts down. */
  readonly ending: AbortSignal;
}

/**
 * Works at one batch: admits its lines, tries again those that may pass later, and records results. Ends when the batch has
 * ended, when another process has it, when it is paused and nothing of it runs, or at a shutdown.
 */
export async function runBatch(
  deps: RunBatchDeps,
  claimed: StoredBatch,
  /** Called with the number of lines in flight, and of those that have just begun. */
  onInFlight: (count: number, begun: number) => void,
) {
  const { batches, calls, keys, files, clock, log, ending } = deps;
  const { account, endpoint, kind } = claimed;
  const route = deps.routeOf(endpoint);
  if (!route) throw new TypeError(`no route for batches of ${endpoint}`);
  const { pool } = jobCatalog[route.job];
  let batch: StoredBatch = claimed;
  const input = createInput(files, batch);
  const providerLines = createProviderLines(deps, batch, route);
  /** The lines in flight by request id, apart from those that batches of providers have. */
  const open = new Map<string, OpenLine>();
  const atProviders = new Map<string, OpenLine>();
  const postponed = new Map<number, StoredLine>();
  /** The calls that have ended and are not recorded, by the id of their line. */
  const ended = new Map<string, { readonly requestId: string; readonly costNanoUsd: bigint }>();
  let waitUntil = 0;
  let renewedAt = clock.now();
  let recordedAt = clock.now();
  let isPaused = false;
  /** Lines begin while others are recorded. */
  let beginning: Promise<void> | undefined;
  let failure: unknown;

  const isRunning = () => batch.status === "in_progress" && clock.now() < batch.expiresAt.getTime();
  const hasMore = () => isRunning() && !(input.isAtEnd() && postponed.size === 0);
  const mayBegin = () => hasMore() && !ending.aborted && clock.now() >= waitUntil;
  const count = (begun = 0) => onInFlight(open.size, begun);
  const stores = { batches, files };

  async function recover(): Promise<void> {
    await batches.lines.delete(account, batch._id, batch.recorded);
    // An earlier claim may have collected lines.
    await batches.providerBatches.seal({ account, batch: batch._id });
    for (const line of await withoutLate(stores, batch, await batches.lines.open(account, batch._id))) {
      input.skipTo({ line: line.line + 1, byte: line.byte + line.bytes });
      if (line.retryAt) postponed.set(line.line, line);
      else (line.providerBatch ? atProviders : open).set(line.requestId, { line, call: undefined, since: clock.now() });
    }
    count();
  }

  function onEnd(requestId: string, costNanoUsd: bigint): void {
    const found = open.get(requestId) ?? atProviders.get(requestId);
    if (!found) return;
    open.delete(requestId);
    atProviders.delete(requestId);
    if (found.call) calls.end(found.call, costNanoUsd);
    ended.set(found.line._id, { requestId, costNanoUsd });
    count();
  }

  async function pause(code: string): Promise<void> {
    waitUntil = clock.now() + pauseMs;
    if (!isPaused) await batches.pause(batch, code);
    isPaused = true;
  }

  /** Returns undefined if the line cannot begin now. A line that is refused gets its error as a result. */
  async function admitOne(
    caller: Caller,
    read: ReadLine,
    provider?: ProviderLines,
  ): Promise<LineCall | StoredLine | undefined> {
    try {
      const call = await calls.admitLine(route as PaidRoute, batch, caller, read, provider);
      // Live calls of the key keep half of its limits.
      const { requests, tokens } = call.slot.rateLimits;
      if ([requests, tokens].some(({ limit, remaining }) => 2 * remaining < limit)) waitUntil = clock.now() + limitedMs;
      return call;
    } catch (thrown) {
      const error = toServiceError(thrown);
      const { code, status } = error;
      if (pausing.includes(code)) {
        await pause(code);
        return undefined;
      }
      // A line that the limits of the key can never let pass is refused.
      if ((status === 429 || status >= 500) && error.shouldRetry !== false) {
        waitUntil = clock.now() + Math.min(maxWaitMs, 1_000 * (error.retryAfterSeconds ?? 1));
        return undefined;
      }
      const { customId, call } = read.parsed;
      return refusedLine(read, { customId, model: call.model }, error.fields());
    }
  }

  const refusedLine = (...refused: Refusal) =>
    refusedLineOf({ batch, instance: deps.instance, now: clock.now() }, ...refused);

  /** Parses a line. One that is no call gets its error as a result. */
  function parseRead({ content, ...place }: FileLine): ReadLine | StoredLine {
    try {
      return { ...place, parsed: parseLine(batch, content) };
    } catch (error) {
      if (!(error instanceof LineRefused)) throw error;
      // The version that validated the file was less strict.
      const { message } = error.problem;
      return refusedLine(place, { customId: customIdOf(content), model: "" }, { code: "invalid_value", message });
    }
  }

  /** Cancels the batch if its key was revoked or has expired, so that no further line runs. */
  const findCaller = () =>
    keys.callerOf(batch.key).catch(async (error: unknown) => {
      if (toServiceError(error).status !== 401) throw error;
      await batches.cancel(account, batch._id);
      return undefined;
    });

  /** Returns the number of lines that have begun. */
  async function begin(): Promise<number> {
    const free = deps.allowed();
    const canPlace = providerLines.isPossible();
    // One line tells whether a pause is over.
    const atMost = Math.min(isPaused ? 1 : admitAtOnce, canPlace ? deps.paced() : free);
    if (atMost <= 0) return 0;
    const lines = await input.next(postponed.values(), atMost, clock.now());
    if (lines.length === 0) return 0;
    const caller = await findCaller();
    if (!caller) return 0;
    // Live calls of the key keep half of its slots.
    let left = Math.min(free, Math.max(1, Math.floor(caller.limits.concurrentRequests / 2)) - open.size);
    // A provider's batch gets a line once; later tries run by themselves.
    const placed = (tried: StoredLine | undefined) =>
      canPlace && !isBudgeted(caller) && !tried ? providerLines : undefined;
    const possible = canPlace ? lines : lines.slice(0, Math.max(0, left));
    const parsed = possible.map(({ read, tried }) => ({ read, tried, line: parseRead(read) }));
    const own = canPlace ? await ownKeysFor(deps, caller) : [];
    const end = parsed.findIndex(
      ({ tried, line }) => "parsed" in line && !placed(tried)?.mayPlace(line.parsed.call, own) && left-- <= 0,
    );
    const fitting = end < 0 ? parsed : parsed.slice(0, end);
    if (fitting.length === 0) {
      waitUntil = clock.now() + fullMs;
      return 0;
    }
    const admitted: readonly Admitted[] = await Promise.all(
      fitting.map(async ({ read, tried, line }) => ({
        read,
        tried,
        line: "parsed" in line ? await admitOne(caller, line, placed(tried)) : line,
      })),
    );
    const waiting = new Set(admitted.flatMap(({ line }) => (isCall(line) ? [line] : [])));
    try {
      return await submitAll(await withHolds(takenOf(admitted)), waiting);
    } finally {
      for (const call of waiting) await calls.withdraw(batch, call);
    }
  }

  /** Holds what the lines for providers can cost. Returns the lines that can be taken then. */
  async function withHolds(taken: readonly Admitted[]): Promise<readonly Admitted[]> {
    const deferred = taken.flatMap(({ line }) => (isCall(line) && line.line.providerBatch ? [line.line] : []));
    if (deferred.length === 0) return taken;
    const { held, refusal } = await providerLines.hold(deferred);
    if (refusal && held.size === 0) await pause(refusal);
    const isHeld = (line: Admitted["line"]) => !isCall(line) || !line.line.providerBatch || held.has(line.line);
    return takenOf(taken.map((each) => (isHeld(each.line) ? each : { ...each, line: undefined })));
  }

  /** Begins lines as long as there are enough to begin together. */
  async function beginAll(): Promise<void> {
    try {
      while (mayBegin() && !providerLines.isDue() && (await withFile(begin, 0)) >= beginAtLeast);
    } catch (error) {
      failure = error;
    }
  }

  /** Stores the lines and submits their calls, which it removes from `waiting`. Returns the number of lines taken. */
  async function submitAll(taken: readonly Admitted[], waiting: Set<LineCall>): Promise<number> {
    const storedOf = (line: LineCall | StoredLine) => ("slot" in line ? line.line : line);
    const linesOf = (of: readonly Admitted[]) => of.flatMap(({ line }) => (line ? [storedOf(line)] : []));
    // If this process has stalled, another one may have recorded these lines. `withoutLate` handles an insert that comes late.
    if (clock.now() + renewMs > (batch.dueAt?.getTime() ?? 0)) throw new Error("the claim of the batch has run out");
    const stored = new Set([
      ...(await batches.lines.insert(linesOf(taken.filter(({ tried }) => !tried)))),
      ...(await batches.lines.beginAgain(linesOf(taken.filter(({ tried }) => tried)))),
    ]);
    const submitting: Promise<void>[] = [];
    for (const { read, tried, line } of taken) {
      if (tried) postponed.delete(tried.line);
      else input.take(read);
      if (!line || !stored.has(storedOf(line).requestId)) continue;
      const { requestId } = storedOf(line);
      if ("slot" in line) {
        waiting.delete(line);
        if (line.line.providerBatch !== undefined) {
          atProviders.set(requestId, { line: line.line, call: undefined, since: clock.now() });
          calls.end(line, 0n, line.maxTokens);
          continue;
        }
        open.set(requestId, { line: line.line, call: line, since: clock.now() });
        submitting.push(calls.submit(batch, route as PaidRoute, line, (cost) => onEnd(requestId, cost)));
      } else {
        if (tried && line.error) await batches.lines.storeError({ account, line: line._id, requestId }, line.error);
        ended.set(storedOf(line)._id, { requestId, costNanoUsd: 0n });
      }
    }
    // Their bodies are in memory until then.
    await Promise.all(submitting);
    if (stored.size < taken.length) throw new Error("another process works at the batch");
    if (taken.length > 0) {
      // The next part that is recorded tells so, too, but not for a long time if a provider has the lines.
      if (batch.paused !== undefined && atProviders.size > 0) await batches.resume(batch);
      isPaused = false;
    }
    count(taken.length);
    return taken.length;
  }

  const outcomeOfUnrun = (): "cancelled" | "expired" => (batch.times.cancelling ? "cancelled" : "expired");

  /** Records what has ended. Returns false if another process has the batch. */
  async function record(): Promise<boolean> {
    const part = createPart(batch);
    const now = clock.now();
    const settled = new Map<string, string>();
    const again: StoredLine[] = [];
    for await (const line of batches.lines.ended(account, [...ended.keys()])) {
      const { requestId, costNanoUsd = 0n } = ended.get(line._id) ?? {};
      if (requestId !== line.requestId) continue;
      const retried = isRunning() ? retryAt(line, now, Math.random()) : undefined;
      settled.set(line._id, requestId);
      if (retried) {
        const { answer: _, error: __, text: ___, ...rest } = line;
        again.push({ ...rest, retryAt: retried });
      } else if (!isRunning() && line.providerBatch !== undefined && line.error?.code === "no_capacity")
        // The provider has not run it.
        part.add(resultOfUnrun(kind, outcomeOfUnrun(), line), line.line);
      else part.addEnded(line, costNanoUsd);
      if (part.isFull()) break;
    }
    await batches.lines.postpone(again);
    // Their next tries may begin and end from here on.
    for (const [id, requestId] of settled) if (ended.get(id)?.requestId === requestId) ended.delete(id);
    for (const line of again) postponed.set(line.line, line);
    recordedAt = clock.now();
    if (!part.isEmpty()) {
      const updated = await part.record(stores, batch, input.cursor());
      if (!updated) return false;
      batch = updated;
    }
    return true;
  }

  const isRecordDue = () => {
    if (ended.size === 0) return false;
    const sinceMs = clock.now() - recordedAt;
    const isLast = open.size === 0 && (input.isAtEnd() || !isRunning());
    if (ended.size >= recordCount || isLast) return sinceMs >= recordMs.many || isLast;
    return sinceMs >= (batch.outputs.length < 60 ? recordMs.first : recordMs.later);
  };

  /** Without its file, a batch ends as cancelled, and the lines that have not begun have no result. */
  async function withFile<T>(work: () => Promise<T>, otherwise: T): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (![404, 410].includes(toServiceError(error).status)) throw error;
      log.warn({ batch: batch._id }, "the file of a batch was deleted while it ran");
      input.skipTo({ line: batch.lines, byte: 0 });
      postponed.clear();
      if (isRunning()) await batches.cancel(account, batch._id);
      return otherwise;
    }
  }

  /** Returns false when this process is done with the batch. */
  async function step(): Promise<boolean> {
    const now = clock.now();
    if (now - renewedAt >= renewMs) {
      renewedAt = now;
      const renewed = await batches.renew(batch);
      if (!renewed) return false;
      batch = renewed;
    }
    await endUntold([...open.values(), ...atProviders.values()]);
    if (isRecordDue() && !(await record())) return false;
    if (failure) throw failure;
    // Lines that are about to be stored must not miss their provider's batch.
    if (!beginning) await providerLines.seal({ all: input.isAtEnd() || !isRunning() || isPaused || ending.aborted });
    if (mayBegin())
      beginning ??= beginAll().finally(() => {
        beginning = undefined;
      });
    if (open.size > 0 || ended.size > 0 || beginning) return true;
    if (ending.aborted) {
      await batches.release(batch);
      return false;
    }
    if (hasMore()) {
      if (!isPaused) return true;
      await batches.release(batch, pauseMs);
      return false;
    }
    if (isEnded(batch)) return false;
    if (atProviders.size > 0) {
      if (isRunning()) await findCaller();
      else await batches.providerBatches.hurry({ account, batch: batch._id });
      await batches.release(batch, isRunning() ? atProviderMs.running : atProviderMs.ending);
      return false;
    }
    const left = { postponed, input, outcome: outcomeOfUnrun() };
    const recorded = await withFile(() => recordUnrun(stores, batch, left), batch);
    if (recorded) await finishBatch(stores, recorded);
    return false;
  }

  const endUntold = createUntoldEnds(deps, batch, pool, onEnd);
  await recover();
  try {
    while (await step()) await sleep(clock, pollMs);
  } finally {
    await beginning;
    onInFlight(0, 0);
    // If another process has the batch, it does not know what was collected here since.
    await providerLines.seal({ all: true }).catch(() => undefined);
  }
  if (failure) throw failure;
}
