import { type DocumentOf, longRunning, openCollection, scatter } from "#platform/mongo/collection";
import type { MoneyDeps } from "./deps.ts";
import { type EntryKey, refundOf, timeIndex } from "./ledger.ts";
import { hasRecovered } from "./sweep.ts";

/** The note of an API instance about the JSON calls whose responses it has to deliver. */
const definition = {
  _id: { type: String, required: true },
  /** The number that its next call gets. */
  next: { type: Number, required: true },
  /** The calls with lower numbers whose callers have not received the complete response. */
  open: { type: [{ _id: String, account: String }], required: true },
  /** The time of the note by MongoDB's clock. */
  notedAt: { type: Date, required: true },
  /** Calls numbered `next` or higher are captured after this time, by MongoDB's clock or a worker's. */
  scanFrom: { type: Date, required: true },
  /** None of its calls can be captured after this time. */
  endsAt: { type: Date, required: true },
  /** Set once the instance is dead and the holds of its calls without a job are ended. */
  holdsEnded: { type: Boolean },
} as const;
type StoredInstance = DocumentOf<typeof definition, { open: readonly EntryKey[] }>;

export interface DeliveryNote {
  readonly instance: string;
  readonly next: number;
  readonly open: readonly EntryKey[];
  /** Unix milliseconds. */
  readonly endsAt: number;
}

type EndHoldsOf = (instance: string) => Promise<unknown>;

/** Many times the interval of the notes. */
const silentMs = 5_000;
/** The clocks of MongoDB, API instances and workers may differ by this much. */
const skewMs = 120_000;
/** If a note is lost, the instance's last one is older, and more is refunded. */
const quick = { writeConcern: { w: 1, journal: false } } as const;

/**
 * Refunds responses that were lost with their API instance (docs/adr/0027). An instance's note may be older than its last
 * deliveries but never newer, so that every response that is not known to have been delivered is refunded.
 */
export function createUndelivered(
  deps: MoneyDeps & { refund: (account: string, requestId: string) => Promise<unknown> },
) {
  const { mongo, ledger, refund, clock, log } = deps;
  const { collection } = openCollection<StoredInstance>(mongo, "apiInstances", definition);

  async function noteDeliveries({ instance, next, open, endsAt }: DeliveryNote): Promise<void> {
    const update = {
      $set: { next, open, endsAt: new Date(endsAt) },
      $unset: { holdsEnded: "" },
      $currentDate: { notedAt: true, scanFrom: true },
    } as const;
    await collection.updateOne({ _id: instance }, update, { upsert: true, ...quick });
  }

  /** Call it when the instance has delivered all its responses and takes no more calls. */
  async function endDeliveries(instance: string): Promise<void> {
    await collection.deleteOne({ _id: instance });
  }

  /** Finds charged calls numbered `next` or higher. */
  const findLater = ({ _id, next, scanFrom }: StoredInstance): Promise<EntryKey[]> =>
    ledger.collection
      .find(
        {
          createdAt: { $gte: new Date(scanFrom.getTime() - skewMs) },
          "reply.instance": _id,
          "reply.number": { $gte: next },
        },
        { projection: { account: 1 }, hint: timeIndex, ...longRunning, ...scatter("undelivered answers") },
      )
      .toArray();

  async function refundCallsOf(dead: StoredInstance, endHoldsOf: EndHoldsOf): Promise<number> {
    const now = new Date(clock.now());
    const captured = await ledger.readCommitted(dead.open);
    const charged = dead.open.filter(({ _id }) => (captured.get(_id)?.amount ?? 0n) < 0n);
    const undelivered = [...charged, ...(await findLater(dead))];
    const refundKeys = undelivered.map(({ _id, account }) => ({ _id: refundOf(_id), account }));
    const refunded = await ledger.readCommitted(refundKeys);
    const owed = undelivered.filter(({ _id }) => !refunded.has(refundOf(_id)));
    for (const { account, _id } of owed) await refund(account, _id);
    // A worker that was stopped for a while may still capture a call, and a worker that waited for MongoDB may still
    // insert a capture.
    if (!hasRecovered(deps)) return owed.length;
    if (!dead.holdsEnded) await endHoldsOf(dead._id);
    const isSame = { _id: dead._id, notedAt: dead.notedAt };
    const open = dead.open.filter(({ _id }) => !captured.has(_id));
    if (now > dead.endsAt) await collection.deleteOne(isSame);
    else await collection.updateOne(isSame, { $set: { open, scanFrom: now, holdsEnded: true } });
    return owed.length;
  }

  /**
   * Refunds the undelivered responses of dead instances, and ends the holds of their calls that never reached a queue.
   * `isAlive` is asked about instances that have noted nothing for a while. Safe in any number of concurrent processes.
   * Resolves to the number of refunded calls.
   */
  async function refundUndelivered(
    isAlive: (instance: string) => Promise<boolean>,
    endHoldsOf: EndHoldsOf,
  ): Promise<number> {
    const isSilent = { $expr: { $lt: ["$notedAt", { $subtract: ["$$NOW", silentMs] }] } };
    let refunded = 0;
    for (const silent of await collection.find(isSilent).toArray()) {
      const instance = silent._id;
      try {
        if (await isAlive(instance)) continue;
        const count = await refundCallsOf(silent, endHoldsOf);
        if (count > 0) log.warn({ instance, count }, "responses that an API instance lost when it died were refunded");
        refunded += count;
      } catch (error) {
        // The next run retries this instance. The other instances do not wait for it.
        log.error(
          { err: error, instance },
          "responses that an API instance lost when it died could not be refunded yet",
        );
      }
    }
    return refunded;
  }

  return { noteDeliveries, endDeliveries, refundUndelivered };
}
