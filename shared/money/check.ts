import type { ClientSession } from "mongoose";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { Mongo } from "#platform/mongo";
import type { Accounts, StoredAccount } from "./accounts.ts";
import { type Ledger, toEntry } from "./ledger.ts";
import { isPaymentAccount } from "./payment-accounts.ts";

export interface Check {
  /** Every account is right to the nano-USD. */
  readonly ok: boolean;
  readonly accounts: number;
  /** Between ledger and balances: the differences of all accounts, without their signs. */
  readonly differenceNanoUsd: bigint;
  readonly openHolds: number;
  /** Past their time, and not yet ended by the sweeper. */
  readonly overdueHolds: number;
  readonly oldestOpenHoldSeconds: number;
  /** Open holds without an entry: calls that run, or that the sweeper will find. */
  readonly undecided: number;
}

interface Sum {
  readonly _id: string;
  readonly amount: bigint;
}

/**
 * For every account, what the ledger says = available + held, once the decided holds are applied; `held` and
 * `openHolds` agree with the holds; nothing is negative. All of it as it was in one moment.
 */
export function createCheck(deps: { mongo: Mongo; accounts: Accounts; ledger: Ledger; clock: Clock; log: Logger }) {
  const { mongo, accounts, ledger, clock, log } = deps;

  return async function check(): Promise<Check> {
    const session = await mongo.connection.startSession({ snapshot: true });
    try {
      return await compare(session);
    } finally {
      await session.endSession();
    }
  };

  async function compare(session: ClientSession): Promise<Check> {
    const now = clock.now();
    const totals = { accounts: 0, differenceNanoUsd: 0n, openHolds: 0, overdueHolds: 0, undecided: 0 };
    let oldestHeldAt = now;
    let wrong = 0;

    async function compareOne(account: StoredAccount, ledgerNanoUsd: bigint): Promise<void> {
      const { _id, available, held, openHolds } = account;
      const holds = Object.entries(account.holds);
      const costs = await costsOf(
        holds.map(([requestId]) => requestId),
        session,
      );
      let pendingNanoUsd = 0n;
      for (const cost of costs.values()) pendingNanoUsd += cost;
      let mapNanoUsd = 0n;
      for (const [, hold] of holds) {
        mapNanoUsd += hold.amount;
        if (hold.expiresAt.getTime() < now) totals.overdueHolds += 1;
        oldestHeldAt = Math.min(oldestHeldAt, hold.heldAt.getTime());
      }
      totals.accounts += 1;
      totals.openHolds += holds.length;
      totals.undecided += holds.length - costs.size;
      const differenceNanoUsd = ledgerNanoUsd - (available + held - pendingNanoUsd);
      const sound = held === mapNanoUsd && openHolds === holds.length && available >= 0n;
      if (sound && differenceNanoUsd === 0n) return;
      note(_id, differenceNanoUsd, { availableNanoUsd: available, heldNanoUsd: held, mapNanoUsd, openHolds });
    }

    function note(account: string, differenceNanoUsd: bigint, found: object): void {
      wrong += 1;
      totals.differenceNanoUsd += differenceNanoUsd < 0n ? -differenceNanoUsd : differenceNanoUsd;
      log.error({ account, differenceNanoUsd, ...found }, "an account is not right");
    }

    // Both in the order of their ids, so that neither is ever whole in memory.
    const sums = ledger.collection.aggregate<Sum>(
      [{ $group: { _id: "$account", amount: { $sum: "$amount" } } }, { $sort: { _id: 1 } }],
      { session, allowDiskUse: true },
    );
    // An account that one payment opened goes when it is empty; its entries stay.
    const orphan = ({ _id, amount }: Sum) => {
      if (amount !== 0n || !isPaymentAccount(_id)) note(_id, amount, { missing: true });
    };
    let sum = await sums.next();
    for await (const account of accounts.collection.find({}, { session, sort: { _id: 1 } })) {
      for (; sum && sum._id < account._id; sum = await sums.next()) orphan(sum);
      const theirs = sum?._id === account._id ? sum : undefined;
      await compareOne(account, theirs?.amount ?? 0n);
      if (theirs) sum = await sums.next();
    }
    for (; sum; sum = await sums.next()) orphan(sum);
    return { ok: wrong === 0, ...totals, oldestOpenHoldSeconds: Math.round((now - oldestHeldAt) / 1_000) };
  }

  /** Of those that are decided. */
  async function costsOf(requestIds: readonly string[], session: ClientSession): Promise<Map<string, bigint>> {
    if (requestIds.length === 0) return new Map();
    const entries = ledger.collection.find({ _id: { $in: [...requestIds] } }, { session });
    return new Map((await entries.toArray()).map((entry) => [entry._id, toEntry(entry).costNanoUsd]));
  }
}
