import { mongo } from "mongoose";
import type { Usage } from "#catalog";
import type { Clock } from "#platform/clock";
import { groupCommit } from "#platform/group-commit";
import { randomBase62 } from "#platform/ids";
import type { Logger } from "#platform/logger";
import { answered, duplicateKey } from "#platform/mongo";
import { accrualOf, type BuybackTerms } from "./accrual.ts";
import { type Ledger, type LedgerEntry, type RequestRecord, type StoredEntry, toEntry } from "./ledger.ts";
import { assertRequestId } from "./request-id.ts";
import { untilDone } from "./retry.ts";
import { assertAmount } from "./usd.ts";

/** How a call ended and what it really cost. */
export interface Decision {
  /** `usage`, a model call, unless this says otherwise. */
  readonly kind?: "usage" | "storage" | undefined;
  readonly account: string;
  readonly requestId: string;
  /** The id of the API key. */
  readonly key: string;
  readonly endpoint: string;
  readonly model?: string | undefined;
  readonly heldNanoUsd: bigint;
  /** Unbounded: what exceeds the hold is not charged, but written as shortfall. */
  readonly costNanoUsd: bigint;
  readonly status: RequestRecord["status"];
  readonly error?: string | undefined;
  readonly upstream?: string | undefined;
  readonly attempts: number;
  readonly usage: Usage;
  readonly estimated: boolean;
  readonly queueMs?: number | undefined;
  readonly firstTokenMs?: number | undefined;
  readonly totalMs: number;
  /** The mint that its buyback goes to: the account's, or the caller's choice. The service's own where there is none. */
  readonly buybackToken?: string | null | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The sweeper decides for a call of which only the hold is known. */
export type AnyDecision = Omit<Decision, "key" | "endpoint"> & Partial<Decision>;

/** A call whose hold is released. */
export type ReleasedCall = Omit<Decision, "costNanoUsd" | "status" | "error" | "attempts" | "usage" | "estimated">;

/** Why a call is not charged. */
export interface ReleaseReason {
  readonly status: "failed" | "cancelled";
  /** The code of the error that is answered. */
  readonly error?: string | undefined;
}

export interface Decided {
  /** Ours is the entry that stands. Exact, also when the answer to our insert was lost. */
  readonly won: boolean;
  readonly entry: LedgerEntry;
}

const groupLimit = 500;
/** A usual entry has half a kilobyte. 500 of the largest stay far below the 48 MB of one message. */
const entryLimitBytes = 16 * 1024;

export function createDecide(deps: { ledger: Ledger; buyback?: BuybackTerms | undefined; clock: Clock; log: Logger }) {
  const { ledger, buyback, clock, log } = deps;
  let shortfalls = 0;

  /** The refusals by their place in the group. */
  async function insert(group: readonly StoredEntry[]): Promise<Map<number, Refusal>> {
    try {
      await answered(ledger.collection.insertMany([...group], { ordered: false, ignoreUndefined: true }));
      return new Map();
    } catch (error) {
      const refusals = error instanceof mongo.MongoBulkWriteError ? [error.writeErrors].flat() : [];
      // Without refusals it is the connection or the replica set that failed: nothing is known of any entry.
      if (refusals.length === 0) throw error;
      if (error instanceof mongo.MongoBulkWriteError && error.result.getWriteConcernError()) throw error;
      return new Map(refusals.map(({ index, code, errmsg = "" }) => [index, { code, errmsg }]));
    }
  }

  /** The entry that stands for each, or why none does yet. */
  async function writeGroup(group: readonly StoredEntry[]): Promise<(StoredEntry | Error)[]> {
    const refusals = await insert(group);
    if (refusals.size === 0) return [...group];
    const standing = await ledger.standing(group.filter((_, at) => refusals.has(at)).map(({ _id }) => _id));
    return group.map((entry, at) => {
      const refusal = refusals.get(at);
      if (!refusal) return entry;
      const decided = refusal.code === duplicateKey ? standing.get(entry._id) : undefined;
      return decided ?? new Error(`${entry._id} is not decided yet: ${refusal.code} ${refusal.errmsg}`);
    });
  }

  const commit = groupCommit<StoredEntry, StoredEntry>({
    limit: groupLimit,
    async write(_, group) {
      try {
        const outcomes = await writeGroup(group);
        for (const each of outcomes) if (each instanceof Error) log.error({ err: each }, "an entry was refused");
        return outcomes;
      } catch (error) {
        log.warn({ err: error, entries: group.length }, "entries are not decided yet");
        throw error;
      }
    },
  });

  /** Throws for what can never be an entry. */
  function encode(decision: AnyDecision): StoredEntry {
    const { kind = "usage", account, requestId, heldNanoUsd, costNanoUsd } = decision;
    assertRequestId(requestId);
    assertAmount(heldNanoUsd, "heldNanoUsd");
    assertAmount(costNanoUsd, "costNanoUsd");
    const chargedNanoUsd = costNanoUsd < heldNanoUsd ? costNanoUsd : heldNanoUsd;
    const { key, endpoint, model, upstream, attempts, status, error, usage, estimated } = decision;
    const { queueMs, firstTokenMs, totalMs } = decision;
    const entry: StoredEntry = {
      _id: requestId,
      account,
      kind,
      amount: -chargedNanoUsd,
      createdAt: new Date(clock.now()),
      decider: randomBase62(12),
      ...accrualOf(buyback, chargedNanoUsd, decision.buybackToken),
      request: {
        key,
        endpoint,
        model,
        upstream,
        attempts,
        status,
        error,
        usage,
        estimated,
        queueMs,
        firstTokenMs,
        totalMs,
        shortfall: costNanoUsd - chargedNanoUsd,
        // What is undefined stays out: `ignoreUndefined`.
      } as NonNullable<StoredEntry["request"]>,
    };
    const bytes = mongo.BSON.serialize(entry, { ignoreUndefined: true }).length;
    if (bytes > entryLimitBytes) throw new RangeError(`the entry of ${requestId} has ${bytes} bytes`);
    return entry;
  }

  function decided(ours: StoredEntry, standing: StoredEntry): Decided {
    const won = standing.decider === ours.decider;
    const shortfallNanoUsd = ours.request?.shortfall ?? 0n;
    if (won && shortfallNanoUsd > 0n) {
      shortfalls += 1;
      const { account, _id: requestId } = ours;
      log.error({ account, requestId, model: ours.request?.model, shortfallNanoUsd }, "a call cost more than was held");
    }
    return { won, entry: toEntry(standing) };
  }

  /** Until a decision stands, ours or another. */
  async function decide(decision: Decision): Promise<Decided> {
    const ours = encode(decision);
    return decided(ours, await untilDone(clock, decision.signal, () => commit("all accounts", ours._id, ours)));
  }

  /** One try. */
  async function decideOnce(decision: AnyDecision): Promise<Decided> {
    const ours = encode(decision);
    return decided(ours, await commit("all accounts", ours._id, ours));
  }

  return { decide, decideOnce, shortfalls: () => shortfalls };
}

interface Refusal {
  readonly code: number;
  readonly errmsg: string;
}
