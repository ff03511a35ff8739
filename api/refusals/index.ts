/**
 * The errors that paid requests of known keys were answered with. A request that was refused before a call was admitted gets
 * a log line and a record, so that its id can be found for a day (docs/api/account.md, "Requests"). Of a call that failed,
 * the ledger has the code; its message may quote the request, so it is only here, for that day. Owns the collection
 * `refusedRequests`, which is not part of the ledger: a record costs nothing and never waits for MongoDB. Records are
 * buffered and written once a second. Those over the limits, those that MongoDB does not accept, and those of a killed
 * process are missing.
 */
import type { ServiceError } from "#errors";
import { dayMs } from "#platform/clock";
import { oneAtATime } from "#platform/concurrency/one-at-a-time";
import { type DocumentOf, openCollection } from "#platform/mongo/collection";
import { createCollections } from "#platform/mongo/migration-steps";
import type { ModuleSchema } from "#platform/mongo/migrations";
import type { Uses } from "#platform/uses";

/** Limits the records of one account in one process, of refusals and of failures. More refusals are only counted. */
const maxPerMinute = 60;
/** Limits the buffered records of all accounts in one process. */
const maxQueued = 200;
const writeMs = 1_000;
const minuteMs = 60_000;
/** In UTF-16 units. */
const maxMessage = 1_000;

const definition = {
  /** The request id. */
  _id: { type: String, required: true },
  account: { type: String, required: true },
  key: { type: String, required: true },
  endpoint: { type: String, required: true },
  status: { type: Number, required: true },
  code: { type: String, required: true },
  /** Missing in records of an earlier version. */
  message: { type: String },
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
  /** Records in the current minute, by account. */
  let [refused, failed] = [new Map<string, number>(), new Map<string, number>()];
  let queued: Stored[] = [];

  function nextMinute(): void {
    for (const [account, count] of refused)
      if (count > maxPerMinute)
        log.info(
          { account, leftOut: count - maxPerMinute },
          "more requests of an account were refused than are logged",
        );
    [refused, failed] = [new Map(), new Map()];
  }

  /** Counts a record, and returns true if there are not too many. */
  function admits(counts: Map<string, number>, account: string): boolean {
    const count = (counts.get(account) ?? 0) + 1;
    counts.set(account, count);
    return count <= maxPerMinute;
  }

  function record({ requestId, ...request }: RefusedRequest, { status, code, message }: ServiceError): void {
    if (queued.length >= maxQueued) return;
    const createdAt = new Date(clock.now());
    queued.push({ _id: requestId, ...request, status, code, message: message.slice(0, maxMessage), createdAt });
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
    /** Notes a refused request. Returns at once, as does the next one. */
    note(request: RefusedRequest, error: ServiceError): void {
      if (!admits(refused, request.account)) return;
      const { status, code } = error;
      log.info({ ...request, status, code }, "a request was refused");
      record(request, error);
    },

    /** Notes the error with which a call was answered. */
    noteFailure(request: RefusedRequest, error: ServiceError): void {
      if (admits(failed, request.account)) record(request, error);
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
