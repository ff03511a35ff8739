import { setTimeout as pause } from "node:timers/promises";
import { mongo } from "mongoose";
import { groupCommit } from "#platform/concurrency/group-commit";
import { retry } from "#platform/concurrency/retry";
import { unlessAborted } from "#platform/concurrency/unless-aborted";
import { randomBase62 } from "#platform/ids";
import { duplicateKey } from "#platform/mongo/connection";
import { accrualOf, type BuybackTerms } from "./accruals.ts";
import { storedAttempts } from "./attempts.ts";
import type { MoneyDeps } from "./deps.ts";
import { assertRequestId, type LedgerEntry, type RequestRecord, type StoredEntry, toEntry } from "./ledger.ts";
import type { CountTags } from "./usage/month-tags.ts";
import { assertAmount } from "./usd.ts";

/** The end of a call and its final cost. */
export interface Capture extends Omit<RequestRecord, "shortfallNanoUsd"> {
  /** Defaults to `usage`, a model call. */
  readonly kind?: "usage" | "storage" | undefined;
  readonly account: string;
  readonly requestId: string;
  /** The id of the API key. */
  readonly key: string;
  readonly endpoint: string;
  readonly heldNanoUsd: bigint;
  /** The lease from which the hold was drawn. Undefined if the call has its own hold. */
  readonly lease?: string | undefined;
  /** The API instance that has to deliver the response, and the call's number there. Undelivered calls are refunded. */
  readonly reply?: { readonly instance: string; readonly number: number } | undefined;
  /** Unbounded: the part above the hold is recorded as a shortfall instead of being charged. */
  readonly costNanoUsd: bigint;
  /** The mint for its buyback, chosen by the account or the caller. Defaults to the service's own. */
  readonly buybackToken?: string | null | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Unix milliseconds after which the capture is no longer attempted. */
  readonly until?: number | undefined;
}

/** The sweeper captures calls of which only the hold is known. */
export type AnyCapture = Omit<Capture, "key" | "endpoint"> & Partial<Capture>;

type OutcomeField = "costNanoUsd" | "status" | "error" | "attempts" | "usage" | "estimated";

/** A call whose hold is released. */
export type ReleasedCall = Omit<Capture, OutcomeField>;

/** The reason why a call is not charged. */
export interface ReleaseReason {
  readonly status: "failed" | "cancelled";
  /** The code of the error in the response. */
  readonly error?: string | undefined;
}

export interface Captured {
  /** Set if this capture made the entry. Exact, even when the response to the insert was lost. */
  readonly won: boolean;
  /** The entry that counts. */
  readonly entry: LedgerEntry;
}

/** A capture that a crash may still lose. */
export interface EarlyCapture extends Captured {
  /**
   * Resolves when no crash can lose the capture, or when another one counts. Rejects when it is too late to capture the
   * call, which is then free.
   */
  readonly journaled: Promise<void>;
}

const groupLimit = 500;
/** An insert takes most of a short call's time. */
const pacing = { many: 10, spacingMs: 4, writers: 2 };
/** One write to the journal serves all entries of this time. Nobody waits for it. */
const journalMs = 20;
/** A typical entry has half a kilobyte. 500 of the largest stay far below MongoDB's 48 MB per message. */
const entryLimitBytes = 16 * 1024;
const backoff = { firstMs: 20, maxMs: 1_000 };

export const zeroCapture = <Call extends Omit<AnyCapture, OutcomeField>>(
  call: Call,
  { status, error }: ReleaseReason,
) => ({ ...call, costNanoUsd: 0n, status, error, attempts: [], usage: {}, estimated: false }) as const;

/** Returns the id of a response, unless it can be derived from the request's. */
const storedAnswerId = (answerId: string | undefined, requestId: string): string | undefined =>
  answerId?.endsWith(requestId.slice("req_".length)) || (answerId?.length ?? 0) > 200 ? undefined : answerId;

/** Returns true if the entry has to be measured. Apart from its text it has a few hundred bytes. */
function mayBeTooLarge(call: AnyCapture): boolean {
  const { account, requestId, lease, key, endpoint, model, upstream, error, buybackToken, usage, attempts, answerId } =
    call;
  const { sessionId, user, tags = [] } = call;
  let characters = 0;
  for (const text of [account, requestId, lease, key, endpoint, model, upstream, error, buybackToken, answerId])
    characters += text?.length ?? 0;
  for (const text of [sessionId, user, ...tags]) characters += text?.length ?? 0;
  for (const unit of Object.keys(usage)) characters += unit.length + 16;
  for (const { upstream: tried, model: other, code } of attempts)
    characters += (tried?.length ?? 0) + (other?.length ?? 0) + (code?.length ?? 0) + 64;
  return characters > 1_000;
}

/** Captures: the first insert into the ledger under a request id wins. */
export function createCapture(deps: MoneyDeps & { buyback?: BuybackTerms | undefined; countTags: CountTags }) {
  const { ledger, buyback, countTags, observer, clock, log } = deps;

  /** Returns for each entry the one that counts, or why there is none yet. */
  async function insertGroup(group: readonly StoredEntry[]): Promise<(StoredEntry | Error)[]> {
    const refusals = await ledger.insert(group);
    if (refusals.size === 0) return [...group];
    const existing = await ledger.readCommitted(group.filter((_, at) => refusals.has(at)));
    return group.map((entry, at) => {
      const refusal = refusals.get(at);
      if (!refusal) return entry;
      const winner = refusal.code === duplicateKey ? existing.get(entry._id) : undefined;
      if (winner) return winner;
      const error = new Error(`${entry._id} is not captured yet: ${refusal.code} ${refusal.errmsg}`);
      log.error({ err: error }, "MongoDB refused a ledger entry");
      return error;
    });
  }

  const commit = groupCommit<StoredEntry, StoredEntry>({
    limit: groupLimit,
    pacing,
    observe: observer?.writes.ledger,
    write: (_, group) =>
      insertGroup(group).catch((error: unknown) => {
        log.warn({ err: error, entries: group.length }, "ledger entries could not be written; retrying");
        throw error;
      }),
  });

  /** An entry that the primary has, and the primary's term. */
  interface Early {
    readonly entry: StoredEntry;
    readonly term: string | undefined;
  }

  const commitEarly = groupCommit<StoredEntry, Early>({
    limit: groupLimit,
    pacing,
    observe: observer?.writes.ledger,
    async write(_, group) {
      const { refusals, term } = await ledger.insertInMemory(group);
      return group.map((entry, at) => {
        const refusal = refusals.get(at);
        return refusal ? new Error(`${entry._id} is not inserted: ${refusal.code} ${refusal.errmsg}`) : { entry, term };
      });
    },
  });

  /** Resolves like `ledger.journal`. Whatever was inserted before it was asked for is journaled by then. */
  let nextJournal: Promise<string | undefined> | undefined;
  function journal(): Promise<string | undefined> {
    nextJournal ??= pause(journalMs).then(() => {
      nextJournal = undefined;
      return ledger.journal();
    });
    return nextJournal;
  }

  /** Throws for values that can never form an entry. */
  function encode(call: AnyCapture): StoredEntry {
    const { kind = "usage", account, requestId, heldNanoUsd, costNanoUsd, lease, reply } = call;
    assertRequestId(requestId);
    assertAmount(heldNanoUsd, "heldNanoUsd");
    assertAmount(costNanoUsd, "costNanoUsd");
    const chargedNanoUsd = costNanoUsd < heldNanoUsd ? costNanoUsd : heldNanoUsd;
    const { key, endpoint, streamed, finishReason, model, batch, upstream, attempts } = call;
    const { status, error, usage, estimated, sessionId, user, tags } = call;
    const answerId = storedAnswerId(call.answerId, requestId);
    const { queueMs, firstTokenMs, totalMs, upstreamCostNanoUsd, byok, savedNanoUsd } = call;
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
      ...accrualOf(buyback, chargedNanoUsd, call.buybackToken),
      request: {
        key,
        endpoint,
        answerId,
        streamed,
        finishReason,
        model,
        batch,
        sessionId,
        user,
        tags,
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
        byok: byok && { key: byok.key, list: byok.listNanoUsd },
        saved: savedNanoUsd,
        // `ignoreUndefined` omits undefined fields.
      } as NonNullable<StoredEntry["request"]>,
    };
    if (mayBeTooLarge(call)) {
      const bytes = mongo.BSON.serialize(entry, { ignoreUndefined: true }).length;
      if (bytes > entryLimitBytes) throw new RangeError(`the entry of ${requestId} has ${bytes} bytes`);
    }
    return entry;
  }

  /** The entry as it is inserted now: the sums of a past hour depend on entries that arrive soon after their own time. */
  async function dated(encoded: StoredEntry, { account, tags }: AnyCapture): Promise<StoredEntry> {
    const createdAt = new Date(clock.now());
    const named = tags && (await countTags(account, createdAt, tags));
    const countedTags = named && named !== tags ? { countedTags: [...named] } : {};
    return { ...encoded, createdAt, ...countedTags };
  }

  /** Inserts the entry, and returns the one that counts. */
  const insertOnce = async (encoded: StoredEntry, call: AnyCapture): Promise<StoredEntry> =>
    commit("all accounts", encoded._id, await dated(encoded, call));

  const insertEarly = async (encoded: StoredEntry, call: AnyCapture): Promise<Early> =>
    commitEarly("all accounts", encoded._id, await dated(encoded, call));

  /** Retries until an entry of the call counts. Rejects with the reason of `signal`. */
  function insert(encoded: StoredEntry, call: AnyCapture): Promise<StoredEntry> {
    const { signal, until = Number.POSITIVE_INFINITY } = call;
    const isInTime = () => clock.now() < until;
    return retry({ clock, signal, backoff, retryIf: isInTime }, async () => {
      if (!isInTime()) throw new Error(`it is too late to capture ${call.requestId}`);
      return unlessAborted(signal, () => insertOnce(encoded, call));
    });
  }

  function toCaptured(encoded: StoredEntry, entry: StoredEntry, call: AnyCapture): Captured {
    const won = entry.decider === encoded.decider;
    const shortfallNanoUsd = encoded.request?.shortfall ?? 0n;
    if (won) observer?.captured(call, { chargedNanoUsd: -encoded.amount, shortfallNanoUsd });
    if (won && shortfallNanoUsd > 0n) {
      const { account, requestId, model } = call;
      log.error({ account, requestId, model, shortfallNanoUsd }, "a call cost more than was held");
    }
    return { won, entry: toEntry(entry) };
  }

  async function capture(call: AnyCapture): Promise<Captured> {
    const encoded = encode(call);
    return toCaptured(encoded, await insert(encoded, call), call);
  }

  async function captureOnce(call: AnyCapture): Promise<Captured> {
    const encoded = encode(call);
    return toCaptured(encoded, await insertOnce(encoded, call), call);
  }

  /**
   * Resolves when the primary has the entry, without waiting for its journal, which takes most of a short call's time. If
   * the primary then loses it, it is inserted again, so that it is lost only if this process dies as well
   * (docs/adr/0042).
   */
  async function captureEarly(call: AnyCapture): Promise<EarlyCapture> {
    const encoded = encode(call);
    const { until = Number.POSITIVE_INFINITY } = call;
    const early = clock.now() < until ? await insertEarly(encoded, call).catch(() => undefined) : undefined;
    if (!early) return { ...toCaptured(encoded, await insert(encoded, call), call), journaled: Promise.resolve() };
    const { entry, term } = early;
    const journaled = keep(encoded, term, call);
    // The caller may fail before it waits.
    journaled.catch(() => undefined);
    return { ...toCaptured(encoded, entry, call), journaled };
  }

  /** Resolves when the entry is journaled. It is inserted again unless the primary of that term has kept it. */
  async function keep(encoded: StoredEntry, term: string | undefined, call: AnyCapture): Promise<void> {
    if (term !== undefined && (await journal().catch(() => undefined)) === term) return;
    const { decider, account, _id: requestId } = await insert(encoded, call);
    if (decider !== encoded.decider)
      log.error({ account, requestId }, "a call was answered, and ended elsewhere before its cost was journaled");
  }

  return { capture, captureOnce, captureEarly };
}
