import type { Collection, mongo as driver } from "mongoose";
import { responseIdOf } from "#formats";
import { scatter } from "#platform/mongo/collection";
import type { Uses } from "#platform/uses";
import type { EventType, Webhooks } from "#webhooks";
import type { Stored } from "./collection.ts";
import { isJob, jobIdOf, renderJob, renderResponse, viewOf } from "./job.ts";
import { type Reading, withoutTexts } from "./reading.ts";

/** The process that ended a job records its event within this time; after a failure, maintenance repeats it. */
export const eventDelayMs = 15_000;
const duePerRun = 500;

type Filter = driver.Filter<Stored>;

/** Responses in the background have the statuses of the Responses format. */
function responseStatusOf({ status, answer }: Stored): string {
  const ended = status === "completed" ? answer?.responseStatus : undefined;
  if (ended === "incomplete" || ended === "failed") return ended;
  return status === "expired" ? "failed" : status;
}

/** The events of jobs that have ended (docs/adr/0035-events-from-records.md). */
export function createJobEvents(
  deps: Uses<"clock" | "log"> & {
    collection: Collection<Stored>;
    reading: Pick<Reading, "resultOf">;
    webhooks: Pick<Webhooks, "record">;
  },
) {
  const { collection, reading, webhooks, clock, log } = deps;

  /** Records the event of a job that has ended, and then notes that this is done. */
  async function record(stored: Stored): Promise<void> {
    if (!stored.eventDueAt || !isJob(stored)) return;
    const { account, _id: requestId } = stored;
    const view = viewOf(stored);
    const status = view.background ? responseStatusOf(stored) : stored.status;
    const extrasOf = async (isFull: boolean) => (isFull ? { result: await reading.resultOf(stored) } : {});
    await webhooks.record({
      account,
      ...(view.background
        ? {
            type: `response.${status}` as EventType,
            objectId: responseIdOf(requestId),
            data: async (isFull) => renderResponse(view, status, await extrasOf(isFull)),
          }
        : {
            type: `job.${status}` as EventType,
            objectId: jobIdOf(requestId),
            data: async (isFull) => renderJob(view, await extrasOf(isFull)),
          }),
      createdAt: view.endedAt ?? view.createdAt,
      callback: stored.callback,
    });
    await collection.updateOne({ account, _id: requestId }, { $unset: { eventDueAt: "" } });
  }

  async function recordOrPostpone(stored: Stored): Promise<void> {
    try {
      await record(stored);
    } catch (error) {
      log.warn(
        { err: (error as Error).message, requestId: stored._id },
        "the event of a job could not be recorded yet",
      );
    }
  }

  return {
    record,
    recordOrPostpone,
    /** Records the events of jobs whose process died after it had ended them. */
    async recordDue(): Promise<void> {
      const filter = { eventDueAt: { $lte: new Date(clock.now()) } } as Filter;
      const options = { projection: withoutTexts, sort: { eventDueAt: 1 }, limit: duePerRun } as const;
      const found = await collection
        .find(filter, { ...options, ...scatter("jobs with an event that is due") })
        .toArray();
      for (const stored of found as Stored[]) {
        const { account, _id: requestId } = stored;
        const eventDueAt = new Date(clock.now() + eventDelayMs);
        await collection.updateOne(
          { account, _id: requestId, eventDueAt: { $exists: true } } as Filter,
          { $set: { eventDueAt } } as driver.UpdateFilter<Stored>,
        );
        await recordOrPostpone(stored);
      }
    },
  };
}
