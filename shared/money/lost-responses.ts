import { notFound } from "#errors";
import { type DocumentOf, findPage, openCollection, type Page } from "#platform/mongo/collection";
import { ignoreDuplicate } from "#platform/mongo/connection";
import type { MoneyDeps } from "./deps.ts";
import type { EntryKey } from "./ledger.ts";

const states = ["refunded", "waiting", "kept"] as const;

/** A charged call whose response was lost with its API instance. */
const definition = {
  /** The request's id. */
  _id: { type: String, required: true },
  account: { type: String, required: true },
  /** The note of the instance that died. */
  note: { type: String, required: true },
  /** The charge. */
  nanoUsd: { type: BigInt, required: true },
  createdAt: { type: Date, required: true },
  /** `waiting` for an operator, who refunds it or keeps the charge. */
  state: { type: String, enum: states, required: true },
  /** Set unless it waits. */
  decidedAt: { type: Date },
} as const;
type Stored = DocumentOf<typeof definition>;

export const waiting = { state: "waiting" } as const;
export const waitingIndex = { createdAt: -1, _id: -1 } as const;
export const noteIndex = { note: 1 } as const;
export const decidedLifetimeSeconds = 90 * 86_400;

export interface LostCall extends EntryKey {
  readonly nanoUsd: bigint;
}

export type LostResponse = ReturnType<typeof toLost>;
const toLost = ({ _id: id, account, nanoUsd, createdAt, state }: Stored) => ({
  id,
  account,
  nanoUsd,
  createdAt,
  state,
});

/**
 * Decides which lost responses are refunded without an operator: those of one account and one death up to a limit. So nobody
 * gains more by bringing an instance down than this limit for each account.
 */
export function createLostResponses(
  deps: MoneyDeps & {
    readonly limitNanoUsd: bigint;
    readonly refund: (account: string, requestId: string) => Promise<unknown>;
  },
) {
  const { mongo, observer, clock, log, limitNanoUsd, refund } = deps;
  const { collection } = openCollection<Stored>(mongo, "lostResponses", definition);
  const now = () => new Date(clock.now());

  async function spentOf(note: string): Promise<Map<string, bigint>> {
    const spent = new Map<string, bigint>();
    for await (const { account, nanoUsd } of collection.find({ note, state: "refunded" }, { hint: noteIndex }))
      spent.set(account, (spent.get(account) ?? 0n) + nanoUsd);
    return spent;
  }

  /** Decisions are stored before the refunds, so that a repetition after a crash does not decide again. */
  async function decide(note: string, calls: readonly LostCall[]): Promise<void> {
    const spent = await spentOf(note);
    const createdAt = now();
    const made = calls.map(({ _id, account, nanoUsd }): Stored => {
      const total = (spent.get(account) ?? 0n) + nanoUsd;
      const lost = { _id, account, note, nanoUsd, createdAt };
      if (total > limitNanoUsd) return { ...lost, state: "waiting" };
      spent.set(account, total);
      return { ...lost, state: "refunded", decidedAt: createdAt };
    });
    // Another process may have decided.
    await collection.insertMany(made, { ordered: false }).catch(ignoreDuplicate);
    const count = made.filter(({ state }) => state === "waiting").length;
    if (count > 0)
      log.warn({ instance: note, count }, "lost responses above the limit of refunds wait for an operator");
    observer?.lost({ waiting: count, refunded: made.length - count });
  }

  /** Refunds these calls up to the limit, each once. Resolves to the number of refunds. */
  async function refundLost(note: string, calls: readonly LostCall[]): Promise<number> {
    if (calls.length === 0) return 0;
    const ids = { $in: calls.map(({ _id }) => _id) };
    const known = new Set((await collection.find({ _id: ids }).toArray()).map(({ _id }) => _id));
    const fresh = calls.filter(({ _id }) => !known.has(_id));
    if (fresh.length > 0) await decide(note, fresh);
    const owed = await collection.find({ _id: ids, state: "refunded" }).toArray();
    for (const { account, _id } of owed) await refund(account, _id);
    return owed.length;
  }

  async function end(id: string, state: "refunded" | "kept", work?: (lost: Stored) => Promise<unknown>) {
    const lost = await collection.findOne({ _id: id, ...waiting });
    if (!lost) throw notFound("lost response");
    await work?.(lost);
    await collection.updateOne({ _id: id, ...waiting }, { $set: { state, decidedAt: now() } });
    return toLost({ ...lost, state });
  }

  return {
    refundLost,
    /** Those above the limit, for operators to decide about. */
    lostResponses: {
      /** Those that wait, newest first. Throws 400 for an unknown `after`. */
      list: async (page: Page): Promise<readonly LostResponse[]> => {
        const unknown = "there is no lost response";
        return (await findPage(collection, page, { filter: waiting, hint: waitingIndex, unknown })).map(toLost);
      },
      /** Throws 404 unless it waits, as does `keep`. */
      refund: (id: string) => end(id, "refunded", ({ account }) => refund(account, id)),
      keep: (id: string) => end(id, "kept"),
    },
  };
}
