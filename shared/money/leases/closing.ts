import type { ClientSession } from "mongoose";
import { dayMs } from "#platform/clock";
import { type DocumentOf, openCollection } from "#platform/collection";
import { randomBase62 } from "#platform/ids";
import type { MoneyDeps } from "../deps.ts";

const definition = {
  /** The id of the lease. */
  _id: { type: String, required: true },
  account: { type: String, required: true },
  /** The costs that were applied. */
  cost: { type: BigInt, required: true },
  closedAt: { type: Date, required: true },
} as const;
export const sweptLifetimeSeconds = (2 * dayMs) / 1_000;
type StoredLease = DocumentOf<typeof definition>;

const prefix = "lease:";
export const isLease = (holdId: string): boolean => holdId.startsWith(prefix);
/** The instance that took a lease. */
export const instanceOf = (lease: string): string => lease.split(":")[1] ?? "";

/** The calls of a lease are decided until this long after their deadlines, or never: so it can be closed at last. */
export const decidableMs = 60_000;

const batchSize = 500;

export type LeaseClosing = ReturnType<typeof createLeaseClosing>;

/** The end of leases. Owns the collection `sweptLeases`: those that the sweeper closed in the last two days. */
export function createLeaseClosing(deps: MoneyDeps) {
  const { mongo, accounts, ledger, observer, clock, log } = deps;
  const { collection: swept } = openCollection<StoredLease>(mongo, "sweptLeases", definition);

  /** Applies the costs of a lease, and returns the rest of it. */
  function endOf(lease: string, cost: bigint) {
    const amount = `$holds.${lease}.amount`;
    const available = { $add: ["$available", { $subtract: [amount, cost] }] };
    return [{ $set: { available, held: { $subtract: ["$held", amount] } } }, { $unset: `holds.${lease}` }];
  }

  /**
   * Closes a lease of this instance, whose calls are all decided, at the sum of their entries: with one read and one write, if
   * the ledger agrees with the costs that this instance knows. False: it was closed before.
   */
  async function closeOwnLease(account: string, lease: string, knownNanoUsd: bigint): Promise<boolean> {
    const cost = (await ledger.sumLeases([{ _id: lease, account }])).get(lease) ?? 0n;
    if (cost !== knownNanoUsd) return closeLease(account, lease);
    const filter = { _id: account, [`holds.${lease}`]: { $exists: true } };
    const end = [{ $set: { openHolds: { $subtract: ["$openHolds", 1] } } }, ...endOf(lease, cost)];
    return (await accounts.collection.updateOne(filter, end)).matchedCount === 1;
  }

  /**
   * Closes a lease at the sum of what is decided by then: its end is in the same transaction as the sum. `sweptAt`: its expiry
   * when the sweeper read it. False: it was closed before, or its instance has relied on it since then.
   */
  const closeLease = (account: string, lease: string, sweptAt?: Date): Promise<boolean> =>
    mongo.inTransaction(async (session) => {
      const open = sweptAt ? { [`holds.${lease}.expiresAt`]: sweptAt } : { [`holds.${lease}`]: { $exists: true } };
      const filter = { _id: account, ...open };
      // The account is written first: in the other order the transaction starves alongside running calls.
      const { matchedCount } = await accounts.collection.updateOne(filter, { $inc: { openHolds: -1 } }, { session });
      if (matchedCount === 0) return false;
      const cost = (await ledger.sumLeases([{ _id: lease, account }], session)).get(lease) ?? 0n;
      await accounts.collection.updateOne(filter, endOf(lease, cost), { session });
      const closed = { _id: lease, account, cost, closedAt: new Date(clock.now()) };
      if (sweptAt) await swept.insertOne(closed, { session });
      return true;
    });

  /** Writes off what the account has spent in the meantime: it is our fault, and a balance is never negative. */
  const writeOff = (lease: string, account: string, amount: bigint, session: ClientSession) =>
    ledger.collection.insertOne(
      {
        _id: `writeoff:${lease}:${randomBase62(12)}`,
        kind: "adjustment",
        account,
        amount,
        createdAt: new Date(clock.now()),
        decider: randomBase62(12),
        reason: "calls were decided after their lease was closed",
      },
      { session },
    );

  /**
   * An instance was taken for dead, its lease was closed, and then a worker decided a call of it: such costs are applied
   * now. Resolves with how many leases had some.
   */
  async function applyLateCosts(): Promise<number> {
    let late = 0;
    const since = new Date(clock.now() - dayMs);
    const applyDifference = (lease: StoredLease, cost: bigint) =>
      mongo.inTransaction(async (session) => {
        const { _id, account } = lease;
        const lateNanoUsd = cost - lease.cost;
        const { matchedCount } = await swept.updateOne({ _id, cost: lease.cost }, { $set: { cost } }, { session });
        if (matchedCount === 0) return;
        const stored = await accounts.collection.findOne({ _id: account }, { session, projection: { available: 1 } });
        const available = stored?.available ?? 0n;
        const charged = lateNanoUsd < available ? lateNanoUsd : available;
        await accounts.collection.updateOne({ _id: account }, { $inc: { available: -charged } }, { session });
        if (charged < lateNanoUsd) await writeOff(_id, account, lateNanoUsd - charged, session);
        late += 1;
        log.error({ account, lease: _id, lateNanoUsd }, "calls were decided after their lease was closed");
      });
    const applyAll = async (leases: readonly StoredLease[]) => {
      const costs = await ledger.sumLeases(leases);
      for (const lease of leases) {
        const cost = costs.get(lease._id) ?? 0n;
        if (cost !== lease.cost) await applyDifference(lease, cost);
      }
    };
    let batch: StoredLease[] = [];
    for await (const lease of swept.find({ closedAt: { $gte: since } })) {
      batch.push(lease);
      if (batch.length < batchSize) continue;
      await applyAll(batch);
      batch = [];
    }
    if (batch.length > 0) await applyAll(batch);
    if (late > 0) observer?.late(late);
    return late;
  }

  /** Filters leases whose entries `applyLateCosts` may still sum. */
  async function findSwept(leases: readonly string[]): Promise<readonly string[]> {
    if (leases.length === 0) return [];
    const found = swept.find({ _id: { $in: [...leases] } }, { projection: { _id: 1 } });
    return (await found.toArray()).map(({ _id }) => _id);
  }

  return { closeLease, closeOwnLease, applyLateCosts, findSwept };
}
