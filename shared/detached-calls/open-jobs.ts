import type { Collection } from "mongoose";
import type { PaidJobName } from "#jobs";
import { scatter } from "#platform/mongo/collection";

/** The index of jobs that have not ended. It has every field that `openJobs` reads, so no document is read. */
export const openJobsIndex = { job: 1, status: 1, createdAt: 1, account: 1 } as const;

/** The oldest jobs that are counted, however many there are. */
export const maxCountedJobs = 5_000;

/** The open jobs of one account. */
export interface OpenJobs {
  readonly account: string;
  readonly jobs: number;
  /** When the oldest of them was created. */
  readonly oldestAt: Date;
}

/** Counts the oldest open jobs by account. Resolves with the accounts of the longest wait first. */
export function countOpenJobs<Document extends object>(
  collection: Collection<Document>,
  { jobs, status, accounts }: { jobs: readonly PaidJobName[]; status: "queued" | "in_progress"; accounts: number },
): Promise<OpenJobs[]> {
  const stages = [
    { $match: { job: { $in: [...jobs] }, status } },
    { $sort: { createdAt: 1 } },
    { $limit: maxCountedJobs },
    { $group: { _id: "$account", jobs: { $sum: 1 }, oldestAt: { $min: "$createdAt" } } },
    { $sort: { oldestAt: 1 } },
    { $limit: accounts },
    { $project: { _id: 0, account: "$_id", jobs: 1, oldestAt: 1 } },
  ];
  return collection.aggregate<OpenJobs>(stages, scatter("open jobs by account")).toArray();
}
