import { conflict, noCapacity, notFound, ServiceError } from "#errors";
import type { Clock } from "#platform/clock";
import { randomBase62 } from "#platform/ids";
import type { Mongo } from "#platform/mongo";
import type { Accounts, StoredAccount } from "./accounts.ts";
import { type Ledger, type LedgerEntry, type StoredEntry, toEntry } from "./ledger.ts";

export interface Moved {
  readonly entry: LedgerEntry;
  /** False if the entry stood before. */
  readonly created: boolean;
}

/** What an account begins with that the movement opens. */
export type Opening = Omit<StoredAccount, "_id" | "available" | "holds"> & { readonly holds: object };

/** Conflicts with running calls are tried again for so long. */
const transactionTimeoutMs = 15_000;

/** A rare movement: one transaction of an account and an entry. */
export function createMove(deps: { mongo: Mongo; accounts: Accounts; ledger: Ledger; clock: Clock }) {
  const { mongo, accounts, ledger, clock } = deps;

  /**
   * Whatever became of the transaction, the ledger tells: an entry of this id stands or not. So a lost answer to a
   * commit cannot make a second one.
   */
  async function move(entry: StoredEntry, opening?: Opening): Promise<Moved> {
    try {
      await transact(entry, opening);
      return { entry: toEntry(entry), created: true };
    } catch (error) {
      const standing = await ledger.seen(entry._id).catch(away);
      if (standing) return { entry: toEntry(standing), created: standing.decider === entry.decider };
      if (error instanceof ServiceError) throw error;
      return away(error);
    }
  }

  function away(cause: unknown): never {
    throw noCapacity("The ledger cannot be written right now. Repeat the request as it is.", 1, cause);
  }

  /** The account first: the other order starves beside running calls. */
  const transact = (entry: StoredEntry, opening: Opening | undefined): Promise<void> =>
    mongo.connection.withSession(async (session) => {
      const { account, amount } = entry;
      const enough = amount < 0n && { available: { $gte: -amount } };
      const options = { readConcern: { level: "snapshot" }, timeoutMS: transactionTimeoutMs } as const;
      await session.withTransaction(async () => {
        const change = { $inc: { available: amount }, ...(opening && { $setOnInsert: opening }) };
        const filter = { _id: account, ...enough };
        const written = { session, upsert: opening !== undefined };
        const { matchedCount, upsertedCount } = await accounts.model.updateOne(filter, change, written);
        if (matchedCount + upsertedCount === 0) {
          if (!(await accounts.model.exists({ _id: account }).session(session))) throw notFound("account");
          throw conflict("More would be taken back than is available.");
        }
        await ledger.model.create([entry], { session });
      }, options);
    });

  const common = (account: string, amountNanoUsd: bigint) => ({
    account,
    amount: amountNanoUsd,
    createdAt: new Date(clock.now()),
    decider: randomBase62(12),
  });

  return { move, common };
}
