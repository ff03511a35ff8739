import { type DocumentOf, longRunning, openCollection, scatter } from "#platform/mongo/collection";
import { isDuplicate } from "#platform/mongo/connection";
import type { MoneyDeps } from "./deps.ts";
import { type EntryKey, refundOf, type StoredEntry, timeIndex } from "./ledger.ts";
import type { LostCall } from "./lost-responses.ts";
import { hasRecovered } from "./sweep.ts";

/** The note of an API instance about the JSON calls whose responses it has to deliver. */
const definition = {
  /** The instance's id. Further notes of an instance that has counted as dead add a number. */
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
  /** Set once the instance counts as dead. It can no longer write this note. */
  dead: { type: Boolean },
  /** Set once the instance is dead and the holds of its calls without a job are ended. */
  holdsEnded: { type: Boolean },
} as const;
type Charge = Pick<StoredEntry, "_id" | "account" | "amount">;
type StoredInstance = DocumentOf<typeof definition, { open: readonly EntryKey[] }>;

/** The note in which an instance records its calls until it counts as dead. Its calls have numbers of their own. */
export interface DeliveryNote {
  readonly id: string;
  readonly firstNumber: number;
}

export interface Deliveries {
  readonly note: DeliveryNote;
  readonly next: number;
  readonly open: readonly EntryKey[];
  /** Unix milliseconds. */
  readonly endsAt: number;
}

export interface Instances {
  /** Asked about instances that have noted nothing for a while. */
  isAlive(instance: string): Promise<boolean>;
  /** The calls that an instance has delivered since it last wrote this note. */
  deliveredSince(note: string): Promise<ReadonlySet<string>>;
  /** Ends the holds of an instance's calls that never reached a queue. */
  endHoldsOf(instance: string): Promise<unknown>;
}

/** A note has fewer numbers than this. */
const numbers = 2 ** 32;
const instanceOf = (note: string) => note.split("#", 1)[0] as string;

/** An instance renews its note every 5 s. */
const silentMs = 20_000;
/** The clocks of MongoDB, API instances and workers may differ by this much. */
const skewMs = 120_000;
/** If a note is lost, the instance's last one is older, and more is refunded. */
const quick = { writeConcern: { w: 1, journal: false } } as const;

/**
 * Refunds responses that were lost with their API instance (docs/adr/0027). An instance's note may be older than its last
 * deliveries but never newer, so that every response that is not known to have been delivered is refunded.
 */
export function createUndelivered(
  deps: MoneyDeps & { refundLost: (note: string, calls: readonly LostCall[]) => Promise<number> },
) {
  const { mongo, ledger, refundLost, clock, log } = deps;
  const { collection } = openCollection<StoredInstance>(mongo, "apiInstances", definition);

  /** The first note of an instance, or the one that follows a note with which it has counted as dead. */
  function deliveryNote(instance: string, last?: DeliveryNote): DeliveryNote {
    const firstNumber = last ? last.firstNumber + numbers : 0;
    return { id: last ? `${instance}#${firstNumber / numbers}` : instance, firstNumber };
  }

  /**
   * Resolves to false if the instance has counted as dead since its last note. If true, and `isDurable`, it does not count as
   * dead for the next seconds, not even after a failover.
   */
  async function noteDeliveries({ note, next, open, endsAt }: Deliveries, isDurable = false): Promise<boolean> {
    const update = {
      $set: { next, open, endsAt: new Date(endsAt) },
      $currentDate: { notedAt: true, scanFrom: true },
    } as const;
    try {
      const options = { upsert: true, ...(!isDurable && quick) };
      await collection.updateOne({ _id: note.id, dead: { $exists: false } }, update, options);
      return true;
    } catch (error) {
      if (isDuplicate(error)) return false;
      throw error;
    }
  }

  /** Call it when the instance has delivered all its responses and takes no more calls. */
  async function endDeliveries({ id }: DeliveryNote): Promise<void> {
    await collection.deleteOne({ _id: id, dead: { $exists: false } });
  }

  /** Finds charged calls numbered `next` or higher. */
  const findLater = ({ _id, next, scanFrom }: StoredInstance): Promise<Charge[]> =>
    ledger.collection
      .find(
        {
          createdAt: { $gte: new Date(scanFrom.getTime() - skewMs) },
          "reply.instance": instanceOf(_id),
          "reply.number": { $gte: next, $lt: (Math.floor(next / numbers) + 1) * numbers },
        },
        { projection: { account: 1, amount: 1 }, hint: timeIndex, ...longRunning, ...scatter("undelivered answers") },
      )
      .toArray();

  /** Returns false if the instance is alive. Otherwise it ends its calls itself before it reads another frame of them. */
  async function isDead({ _id, notedAt, dead }: StoredInstance, instances: Instances): Promise<boolean> {
    if (dead) return true;
    if (await instances.isAlive(instanceOf(_id))) return false;
    return (await collection.updateOne({ _id, notedAt }, { $set: { dead: true } })).matchedCount === 1;
  }

  async function refundCallsOf(dead: StoredInstance, instances: Instances): Promise<number> {
    const now = new Date(clock.now());
    const captured = await ledger.readCommitted(dead.open);
    const found = [...captured.values(), ...(await findLater(dead))];
    const delivered = await instances.deliveredSince(dead._id);
    const undelivered = found.filter(({ _id, amount }) => amount < 0n && !delivered.has(_id));
    const refundKeys = undelivered.map(({ _id, account }) => ({ _id: refundOf(_id), account }));
    const refunded = await ledger.readCommitted(refundKeys);
    const owed = undelivered.filter(({ _id }) => !refunded.has(refundOf(_id)));
    const lost = owed.map(({ _id, account, amount }) => ({ _id, account, nanoUsd: -amount }));
    const count = await refundLost(dead._id, lost);
    // A worker that was stopped for a while may still capture a call, and a worker that waited for MongoDB may still
    // insert a capture.
    if (!hasRecovered(deps)) return count;
    const instance = instanceOf(dead._id);
    // One that was only paused ends them itself.
    if (!dead.holdsEnded && !(await instances.isAlive(instance))) await instances.endHoldsOf(instance);
    const isSame = { _id: dead._id, notedAt: dead.notedAt };
    const open = dead.open.filter(({ _id }) => !captured.has(_id));
    if (now > dead.endsAt) await collection.deleteOne(isSame);
    else await collection.updateOne(isSame, { $set: { open, scanFrom: now, holdsEnded: true } });
    return count;
  }

  /**
   * Refunds the undelivered responses of dead instances, and ends the holds of their calls that never reached a queue. Safe in
   * any number of concurrent processes. Resolves to the number of refunded calls.
   */
  async function refundUndelivered(instances: Instances): Promise<number> {
    const isSilent = { $expr: { $lt: ["$notedAt", { $subtract: ["$$NOW", silentMs] }] } };
    let refunded = 0;
    for (const silent of await collection.find(isSilent).toArray()) {
      const instance = silent._id;
      try {
        if (!(await isDead(silent, instances))) continue;
        const count = await refundCallsOf(silent, instances);
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

  return { deliveryNote, noteDeliveries, endDeliveries, refundUndelivered };
}
