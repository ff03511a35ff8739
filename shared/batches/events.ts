import type { Collection, mongo as driver } from "mongoose";
import { scatter } from "#platform/mongo/collection";
import type { Uses } from "#platform/uses";
import type { EventType, NewEvent, Webhooks } from "#webhooks";
import { isEnded, type StoredBatch } from "./collections.ts";
import { rendered } from "./render.ts";

/** The process that ended or paused a batch records its event within this time; after a failure, maintenance repeats it. */
export const eventDelayMs = 15_000;
const duePerRun = 500;

type Filter = driver.Filter<StoredBatch>;

/** The events of batches that have ended or are paused (docs/adr/0035-events-from-records.md). */
export function createBatchEvents(
  deps: Uses<"clock" | "log"> & { collection: Collection<StoredBatch>; webhooks: Pick<Webhooks, "record"> },
) {
  const { collection, webhooks, clock, log } = deps;

  /** Returns undefined if the batch has gone on since its pause. */
  function eventOf(batch: StoredBatch): Pick<NewEvent, "type" | "createdAt" | "occurrence"> | undefined {
    const { kind, status, times, paused, pausedAt } = batch;
    const now = new Date(clock.now());
    if (isEnded(batch)) {
      const type = (kind === "openai" ? `batch.${status}` : "message_batch.ended") as EventType;
      return { type, createdAt: times[status] ?? now };
    }
    if (paused === undefined) return undefined;
    const createdAt = pausedAt ?? now;
    return { type: "batch.paused", createdAt, occurrence: createdAt.toISOString() };
  }

  /** Rejects nothing: maintenance repeats what has failed. */
  async function record(batch: StoredBatch): Promise<void> {
    const { account, _id, callback, eventDueAt } = batch;
    try {
      const event = eventOf(batch);
      if (event) await webhooks.record({ account, objectId: _id, ...event, data: () => rendered(batch), callback });
      // It may have ended since it was paused.
      await collection.updateOne({ account, _id, eventDueAt } as Filter, { $unset: { eventDueAt: "" } });
    } catch (error) {
      log.warn({ err: (error as Error).message, batch: _id }, "the event of a batch could not be recorded yet");
    }
  }

  return {
    record,
    /** Records the events of batches whose process died after it had ended or paused them. */
    async recordDue(): Promise<void> {
      const filter = { eventDueAt: { $lte: new Date(clock.now()) } } as Filter;
      const found = await collection
        .find(filter, { ...scatter("batches with an event that is due"), limit: duePerRun })
        .toArray();
      for (const batch of found) await record(batch);
    },
  };
}
