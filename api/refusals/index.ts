/**
 * Paid requests of known keys that were refused before a call was admitted. Each gets a log line and a record, so that its
 * id can be found for a day (docs/api/account.md, "Requests"). Owns the collection `refusedRequests`, which is not part of
 * the ledger: a refusal costs nothing and never waits for MongoDB. Records are buffered and written once a second. Those
 * over the limits, those that MongoDB does not accept, and those of a killed process are missing.
 */
import type { ServiceError } from "#errors";
import { dayMs } from "#platform/clock";
import { oneAtATime } from "#platform/concurrency/one-at-a-time";
import { type DocumentOf, openCollection } from "#platform/mongo/collection";
import { createCollections } from "#platform/mongo/migration-steps";
import type { ModuleSchema } from "#platform/mongo/migrations";
import type { Uses } from "#platform/uses";

/** Limits the records of one account in one process. More are only counted. */
const maxPerMinute = 60;
/** Limits the buffered records of all accounts in one process. */
const maxQueued = 200;
const writeMs = 1_000;
const minuteMs = 60_000;

const definition = {
  /** The request id. */
  _id: { type: String, required: true },
  account: { type: String, required: true },
  key: { type: String, required: true },
  endpoint: { type: String, required: true },
  status: { type: Number, required: true },
  code: { type: String, required: true },
  createdAt: { type: Date, required: true },
} as const;
type Stored = DocumentOf<typeof definition>;

export const refusalsSchema = {
  module: "refusals",
  unsharded: {
    refusedRequests: "small documents of one day, as many as API processes let through, found by their ids",
  },
  migrations: [
    createCollections("refusedRequests", [
      {
        collection: "refusedRequests",
        // The index only saves space: every read checks the time.
        indexes: [{ key: { createdAt: 1 }, expireAfterSeconds: dayMs / 1_000 }],
      },
    ]),
  ],
} satisfies ModuleSchema;

export type Refusal = Omit<Stored, "_id"> & { readonly requestId: string };

type RefusedRequest = Pick<Refusal, "requestId" | "account" | "key" | "endpoint">;
export type Refusals = ReturnType<typeof createRefusals>;

export function createRefusals({ mongo, clock, log }: Uses<"mongo" | "clock" | "log">) {
  const { collection } = openCollection<Stored>(mongo, "refusedRequests", definition);
  /** Refusals in the current minute, by account. */
  let counts = new Map<string, number>();
  let queued: Stored[] = [];

  function nextMinute(): void {
    for (const [account, count] of counts)
      if (count > maxPerMinute)
        log.info(
          { account, leftOut: count - maxPerMinute },
          "more requests of an account were refused than are logged",
        );
    counts = new Map();
  }

  const write = oneAtATime(log, "refused requests were not recorded", async () => {
    if (queued.length === 0) return;
    const batch = queued;
    queued = [];
    await collection.insertMany(batch, { ordered: false });
  });

  const stops = [clock.every(minuteMs, nextMinute), clock.every(writeMs, () => void write())];

  async function find(filter: { _id: string; account?: string }): Promise<Refusal | undefined> {
    const stored = await collection.findOne({ ...filter, createdAt: { $gt: new Date(clock.now() - dayMs) } });
    if (!stored) return undefined;
    const { _id, ...fields } = stored;
    return { requestId: _id, ...fields };
  }

  return {
    /** Returns at once. */
    note({ requestId, ...request }: RefusedRequest, { status, code }: ServiceError): void {
      const { account } = request;
      const count = (counts.get(account) ?? 0) + 1;
      counts.set(account, count);
      if (count > maxPerMinute) return;
      log.info({ requestId, ...request, status, code }, "a request was refused");
      if (queued.length < maxQueued)
        queued.push({ _id: requestId, ...request, status, code, createdAt: new Date(clock.now()) });
    },

    find: (account: string, requestId: string) => find({ _id: requestId, account }),

    /** Searches all accounts, for operators. */
    findOfAll: (requestId: string) => find({ _id: requestId }),

    async stop(): Promise<void> {
      for (const stop of stops) stop();
      nextMinute();
      await write();
    },
  };
}
