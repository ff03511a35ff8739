import type { ClientSession } from "mongoose";
import { dayMs, sleep } from "#platform/clock";
import { randomBase62 } from "#platform/ids";
import { type DocumentOf, inBatches, openCollection } from "#platform/mongo/collection";
import type { MoneyDeps } from "../deps.ts";

const definition = {
  /** The id of the lease. */
  _id: { type: String, required: true },
  account: { type: String, required: true },
  /** The costs that were settled. */
  cost: { type: BigInt, required: true },
  closedAt: { type: Date, required: true },
} as const;
export const sweptLifetimeSeconds = (2 * dayMs) / 1_000;
type StoredLease = DocumentOf<typeof definition>;

const prefix = "lease:";
export const isLease = (holdId: string): boolean => holdId.startsWith(prefix);
export const instanceOf = (lease: string): string => lease.split(":")[1] ?? "";

/** The calls of a lease are captured within this time after their deadlines or never. */
export const capturableMs = 60_000;

/** A worker inserts an entry again within seconds of an election. */
const missingPauseMs = 1_000;
const missingLooks = 15;

const batchSize = 500;

export type LeaseClosing = ReturnType<typeof createLeaseClosing>;

/** Closes leases. Owns the collection `sweptLeases`: those of the last two days whose costs may not all have been known. */
export function createLeaseClosing(deps: MoneyDeps) {
  const { mongo, accounts, ledger, observer, clock, log } = deps;
  const { collection: swept } = openCollection<StoredLease>(mongo, "sweptLeases", definition);

  /** Returns the update that settles the costs of a lease and gives back the rest of it. */
  function endOf(lease: string, cost: bigint) {
    const amount = `$holds.${lease}.amount`;
    const available = { $add: ["$available", { $subtract: [amount, cost] }] };
    return [{ $set: { available, held: { $subtract: ["$held", amount] } } }, { $unset: `holds.${lease}` }];
  }

  /**
   * Closes a lease of this instance, whose calls are all captured, at the sum of their entries. If the ledger agrees
   * with the costs that this instance knows, this takes one read and two writes, of which the first waits for the journal of
   * the entries. If entries are missing, a failover has lost them, and their worker inserts them again unless it has died too.
   * Returns false if the lease was already closed.
   */
  async function closeOwnLease(account: string, lease: string, knownNanoUsd: bigint): Promise<boolean> {
    const sum = async () => (await ledger.sumLeases([{ _id: lease, account }])).get(lease) ?? 0n;
    await ledger.journal(account);
    let cost = await sum();
    for (let looks = 0; cost < knownNanoUsd && looks < missingLooks; looks++) {
      await sleep(clock, missingPauseMs);
      cost = await sum();
    }
    if (cost !== knownNanoUsd) return closeLease(account, lease, { isWatched: cost < knownNanoUsd });
    const filter = { _id: account, [`holds.${lease}`]: { $exists: true } };
    const end = [{ $set: { openHolds: { $subtract: ["$openHolds", 1] } } }, ...endOf(lease, cost)];
    return (await accounts.collection.updateOne(filter, end)).matchedCount === 1;
  }

  /**
   * Closes a lease at the sum of its captured costs, in one transaction with that sum. `sweptAt` is its expiry as the
   * sweeper read it. The costs of a watched lease that are captured later are settled by `settleLateCosts`. Returns false
   * if the lease was already closed, or if its instance has extended it since.
   */
  const closeLease = (
    account: string,
    lease: string,
    { sweptAt, isWatched = sweptAt !== undefined }: { sweptAt?: Date; isWatched?: boolean } = {},
  ): Promise<boolean> =>
    mongo.inTransaction(async (session) => {
      const open = sweptAt ? { [`holds.${lease}.expiresAt`]: sweptAt } : { [`holds.${lease}`]: { $exists: true } };
      const filter = { _id: account, ...open };
      // The account is written first, because in the reverse order the transaction starves alongside running calls.
      const { matchedCount } = await accounts.collection.updateOne(filter, { $inc: { openHolds: -1 } }, { session });
      if (matchedCount === 0) return false;
      const cost = (await ledger.sumLeases([{ _id: lease, account }], session)).get(lease) ?? 0n;
      await accounts.collection.updateOne(filter, endOf(lease, cost), { session });
      const closed = { _id: lease, account, cost, closedAt: new Date(clock.now()) };
      if (isWatched) await swept.insertOne(closed, { session });
      return true;
    });

  /** Writes off what the account has spent in the meantime, because a balance is never negative. */
  const writeOff = (lease: string, account: string, amount: bigint, session: ClientSession) =>
    ledger.collection.insertOne(
      {
        _id: `writeoff:${lease}:${randomBase62(12)}`,
        kind: "adjustment",
        account,
        amount,
        createdAt: new Date(clock.now()),
        decider: randomBase62(12),
        reason: "costs of calls were captured after their lease was closed",
      },
      { session },
    );

  /**
   * Settles costs that were captured late: an instance was considered dead and its lease was closed before a worker
   * captured one of its calls. Returns the number of leases with late costs.
   */
  async function settleLateCosts(): Promise<number> {
    let late = 0;
    const since = new Date(clock.now() - dayMs);
    const settleDifference = (lease: StoredLease, cost: bigint) =>
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
        log.error({ account, lease: _id, lateNanoUsd }, "costs of calls were captured after their lease was closed");
      });
    for await (const leases of inBatches(swept.find({ closedAt: { $gte: since } }), batchSize)) {
      const costs = await ledger.sumLeases(leases);
      for (const lease of leases) {
        const cost = costs.get(lease._id) ?? 0n;
        if (cost !== lease.cost) await settleDifference(lease, cost);
      }
    }
    if (late > 0) observer?.late(late);
    return late;
  }

  /** Returns the leases whose entries `settleLateCosts` may still sum. */
  async function findSwept(leases: readonly string[]): Promise<readonly string[]> {
    if (leases.length === 0) return [];
    const found = swept.find({ _id: { $in: [...leases] } }, { projection: { _id: 1 } });
    return (await found.toArray()).map(({ _id }) => _id);
  }

  return { closeLease, closeOwnLease, settleLateCosts, findSwept };
}
