import { mongo } from "mongoose";
import { groupCommit } from "#platform/group-commit";
import { randomBase62 } from "#platform/ids";
import { duplicateKey } from "#platform/mongo";
import { retry } from "#platform/retry";
import { unlessAborted } from "#platform/unless-aborted";
import { accrualOf, type BuybackTerms } from "./accruals.ts";
import { storedAttempts } from "./attempts.ts";
import type { MoneyDeps } from "./deps.ts";
import { assertRequestId, type LedgerEntry, type RequestRecord, type StoredEntry, toEntry } from "./ledger.ts";
import { assertAmount } from "./usd.ts";

/** The end of a call and its real cost. */
export interface Decision extends Omit<RequestRecord, "shortfallNanoUsd"> {
  /** Default: `usage`, a model call. */
  readonly kind?: "usage" | "storage" | undefined;
  readonly account: string;
  readonly requestId: string;
  /** The id of the API key. */
  readonly key: string;
  readonly endpoint: string;
  readonly heldNanoUsd: bigint;
  /** The lease that the hold was given out of. Absent: the call has a hold of its own. */
  readonly lease?: string | undefined;
  /** The API instance that has to deliver the answer, and the call's number there: without delivery it is refunded. */
  readonly reply?: { readonly instance: string; readonly number: number } | undefined;
  /** Unbounded: what exceeds the hold is not charged, but recorded as shortfall. */
  readonly costNanoUsd: bigint;
  /** The mint that its buyback goes to: the account's or the caller's choice. Default: the service's own. */
  readonly buybackToken?: string | null | undefined;
  readonly signal?: AbortSignal | undefined;
  /** From then on it is not tried any more. Unix milliseconds. */
  readonly until?: number | undefined;
}

/** The sweeper decides calls of which only the hold is known. */
export type AnyDecision = Omit<Decision, "key" | "endpoint"> & Partial<Decision>;

type OutcomeField = "costNanoUsd" | "status" | "error" | "attempts" | "usage" | "estimated";

/** A call whose hold is released. */
export type ReleasedCall = Omit<Decision, OutcomeField>;

/** Why a call is not charged. */
export interface ReleaseReason {
  readonly status: "failed" | "cancelled";
  /** The code of the error that is answered. */
  readonly error?: string | undefined;
}

export interface Decided {
  /** True if this decision made the entry. Exact, even when the answer to the insert was lost. */
  readonly won: boolean;
  /** The entry that counts. */
  readonly entry: LedgerEntry;
}

/** The cost is that of the entry that counts. */
export type Application = Pick<Decision, "account" | "requestId" | "heldNanoUsd" | "costNanoUsd" | "signal">;

const groupLimit = 500;
/** A usual entry has half a kilobyte. 500 of the largest stay far below MongoDB's 48 MB per message. */
const entryLimitBytes = 16 * 1024;
const backoff = { firstMs: 20, maxMs: 1_000 };

/** The decision that a call costs nothing. */
export const releaseDecision = <Call extends Omit<AnyDecision, OutcomeField>>(
  call: Call,
  { status, error }: ReleaseReason,
) => ({ ...call, costNanoUsd: 0n, status, error, attempts: [], usage: {}, estimated: false }) as const;

/** The id of an answer, unless it follows from the request's. */
const storedAnswerId = (answerId: string | undefined, requestId: string): string | undefined =>
  answerId?.endsWith(requestId.slice("req_".length)) || (answerId?.length ?? 0) > 200 ? undefined : answerId;

/** Decides if the entry has to be measured: apart from its text it has a few hundred bytes. */
function mayBeTooLarge(decision: AnyDecision): boolean {
  const { account, requestId, lease, key, endpoint, model, upstream, error, buybackToken, usage, attempts, answerId } =
    decision;
  let characters = 0;
  for (const text of [account, requestId, lease, key, endpoint, model, upstream, error, buybackToken, answerId])
    characters += text?.length ?? 0;
  for (const unit of Object.keys(usage)) characters += unit.length + 16;
  for (const { upstream: tried, model: other, code } of attempts)
    characters += (tried?.length ?? 0) + (other?.length ?? 0) + (code?.length ?? 0) + 64;
  return characters > 1_000;
}

/** Decisions: the first insert into the ledger under a request id wins. */
export function createDecide(deps: MoneyDeps & { buyback?: BuybackTerms | undefined }) {
  const { ledger, buyback, observer, clock, log } = deps;
  let shortfalls = 0;

  /** For each entry the one that counts, or why there is none yet. */
  async function insertGroup(group: readonly StoredEntry[]): Promise<(StoredEntry | Error)[]> {
    const refusals = await ledger.insert(group);
    if (refusals.size === 0) return [...group];
    const existing = await ledger.readCommitted(group.filter((_, at) => refusals.has(at)));
    return group.map((entry, at) => {
      const refusal = refusals.get(at);
      if (!refusal) return entry;
      const winner = refusal.code === duplicateKey ? existing.get(entry._id) : undefined;
      if (winner) return winner;
      const error = new Error(`${entry._id} is not decided yet: ${refusal.code} ${refusal.errmsg}`);
      log.error({ err: error }, "MongoDB refused a ledger entry");
      return error;
    });
  }

  const commit = groupCommit<StoredEntry, StoredEntry>({
    limit: groupLimit,
    // An insert waits for the journal, which takes most of a quick call's time.
    pacing: { many: 10, spacingMs: 4, writers: 2 },
    observe: observer?.writes.ledger,
    write: (_, group) =>
      insertGroup(group).catch((error: unknown) => {
        log.warn({ err: error, entries: group.length }, "ledger entries are not written yet");
        throw error;
      }),
  });

  /** Throws for what can never be an entry. */
  function encode(decision: AnyDecision): StoredEntry {
    const { kind = "usage", account, requestId, heldNanoUsd, costNanoUsd, lease, reply } = decision;
    assertRequestId(requestId);
    assertAmount(heldNanoUsd, "heldNanoUsd");
    assertAmount(costNanoUsd, "costNanoUsd");
    const chargedNanoUsd = costNanoUsd < heldNanoUsd ? costNanoUsd : heldNanoUsd;
    const { key, endpoint, streamed, finishReason, model, upstream, attempts, status, error, usage, estimated } =
      decision;
    const answerId = storedAnswerId(decision.answerId, requestId);
    const { queueMs, firstTokenMs, totalMs, upstreamCostNanoUsd } = decision;
    if (upstreamCostNanoUsd !== undefined) assertAmount(upstreamCostNanoUsd, "upstreamCostNanoUsd");
    const entry: StoredEntry = {
      _id: requestId,
      account,
      kind,
      amount: -chargedNanoUsd,
      createdAt: new Date(clock.now()),
      decider: randomBase62(12),
      ...(lease !== undefined && { lease }),
      ...(reply && chargedNanoUsd > 0n && { reply }),
      ...accrualOf(buyback, chargedNanoUsd, decision.buybackToken),
      request: {
        key,
        endpoint,
        answerId,
        streamed,
        finishReason,
        model,
        upstream,
        attempts: storedAttempts(attempts, { upstream, model }),
        status,
        error,
        usage,
        estimated,
        queueMs,
        firstTokenMs,
        totalMs,
        shortfall: costNanoUsd - chargedNanoUsd,
        upstreamCost: upstreamCostNanoUsd,
        // Undefined fields are not stored: `ignoreUndefined`.
      } as NonNullable<StoredEntry["request"]>,
    };
    if (mayBeTooLarge(decision)) {
      const bytes = mongo.BSON.serialize(entry, { ignoreUndefined: true }).length;
      if (bytes > entryLimitBytes) throw new RangeError(`the entry of ${requestId} has ${bytes} bytes`);
    }
    return entry;
  }

  /**
   * The insert of a decision. It is the same one, however often it is tried, except for its time: sums of an hour that is over
   * depend on entries that arrive soon after the time which they bear.
   */
  function insertOf(decision: AnyDecision): () => Promise<Decided> {
    const inserted = encode(decision);
    return async () => {
      const entry = await commit("all accounts", inserted._id, { ...inserted, createdAt: new Date(clock.now()) });
      const won = entry.decider === inserted.decider;
      const shortfallNanoUsd = inserted.request?.shortfall ?? 0n;
      if (won) observer?.decided(decision, { chargedNanoUsd: -inserted.amount, shortfallNanoUsd });
      if (won && shortfallNanoUsd > 0n) {
        shortfalls += 1;
        const { account, requestId, model } = decision;
        log.error({ account, requestId, model, shortfallNanoUsd }, "a call cost more than was held");
      }
      return { won, entry: toEntry(entry) };
    };
  }

  /** Retries until there is a decision, this one or an earlier one. Rejects with the reason of `signal`. */
  async function decide(decision: AnyDecision): Promise<Decided> {
    const insertOnce = insertOf(decision);
    const { signal, until = Number.POSITIVE_INFINITY } = decision;
    const isInTime = () => clock.now() < until;
    return retry({ clock, signal, backoff, retryIf: isInTime }, async () => {
      if (!isInTime()) throw new Error(`it is too late to decide ${decision.requestId}`);
      return unlessAborted(signal, insertOnce);
    });
  }
  const decideOnce = async (decision: AnyDecision): Promise<Decided> => insertOf(decision)();

  return {
    decide,
    decideOnce,
    /** The number of calls that cost more than was held, since this process started. Should be 0. */
    shortfalls: () => shortfalls,
  };
}

/** Applications: each ends one hold on its account, once, by its filter. */
export function createApply(deps: MoneyDeps) {
  const { accounts, observer, clock, log } = deps;
  /** Applies all of them or none. */
  async function write(account: string, group: readonly Application[]): Promise<boolean> {
    const open: Record<`holds.${string}.amount`, bigint> = {};
    const ended: Record<`holds.${string}`, ""> = {};
    let heldNanoUsd = 0n;
    let costNanoUsd = 0n;
    for (const each of group) {
      open[`holds.${each.requestId}.amount`] = each.heldNanoUsd;
      ended[`holds.${each.requestId}`] = "";
      heldNanoUsd += each.heldNanoUsd;
      costNanoUsd += each.costNanoUsd;
    }
    const balance = { held: -heldNanoUsd, available: heldNanoUsd - costNanoUsd, openHolds: -group.length };
    const update = accounts.collection.updateOne({ _id: account, ...open }, { $inc: balance, $unset: ended });
    return (await update).matchedCount === 1;
  }

  async function writeGroup(account: string, group: readonly Application[]): Promise<(boolean | Error)[]> {
    try {
      if (await write(account, group)) return group.map(() => true);
    } catch (error) {
      log.warn({ err: error, account, applications: group.length }, "costs are not applied yet");
      throw error;
    }
    if (group.length === 1) return [false];
    // Another process applied one of them: try each alone.
    const outcomes: (boolean | Error)[] = [];
    for (const each of group) outcomes.push(await write(account, [each]).catch((error: Error) => error));
    return outcomes;
  }

  const commit = groupCommit<Application, boolean>({
    limit: groupLimit,
    observe: observer?.writes.applications,
    write: writeGroup,
  });

  function assertValid({ requestId, heldNanoUsd, costNanoUsd }: Application): void {
    assertRequestId(requestId);
    assertAmount(heldNanoUsd, "heldNanoUsd");
    assertAmount(costNanoUsd, "costNanoUsd");
    if (costNanoUsd > heldNanoUsd) throw new RangeError(`${requestId} cost more than was held`);
  }

  /** Retries until it is applied. A hold that does not exist was ended before. */
  async function apply(application: Application): Promise<void> {
    assertValid(application);
    const { account, requestId, signal } = application;
    const commitOnce = () => commit(account, requestId, application);
    await retry({ clock, signal, backoff }, () => unlessAborted(signal, commitOnce));
  }

  /** Does not retry. True if this ended the hold. */
  async function applyOnce(application: Application): Promise<boolean> {
    assertValid(application);
    return commit(application.account, application.requestId, application);
  }

  return { apply, applyOnce };
}
