import { z } from "zod";
import { maxCountedJobs, type OpenJobs } from "#detached-calls";
import { callPools, jobCatalog, type PaidJobName } from "#jobs";
import { fields, orNull, tag, unixSeconds } from "../../http/fields.ts";
import { listOf, wholeList } from "../../http/page.ts";
import { type AdminDeps, route } from "./route.ts";

const maxAccounts = 100;

const jobQueue = fields({
  object: tag("job_queue"),
  pool: z.enum(callPools),
  account: z.string(),
  waiting: z.int(),
  running: z.int(),
  oldest_waiting_at: orNull(unixSeconds).describe("When the account's longest waiting job was submitted"),
  oldest_running_at: orNull(unixSeconds).describe("When the oldest of its running jobs was submitted"),
}).meta({ id: "JobQueue" });

const jobsByPool = callPools.map((pool) => {
  const jobs = Object.entries(jobCatalog).filter(([, job]) => job.pool === pool);
  return [pool, jobs.map(([name]) => name as PaidJobName)] as const;
});

async function queuesOf({ detachedCalls }: AdminDeps, pool: (typeof callPools)[number], jobs: readonly PaidJobName[]) {
  const read = async (status: "queued" | "in_progress") => {
    const found = await detachedCalls.countOpenByAccount({ jobs, status, accounts: maxAccounts });
    return new Map<string, OpenJobs>(found.map((each) => [each.account, each]));
  };
  const [waiting, running] = await Promise.all([read("queued"), read("in_progress")]);
  return [...new Set([...waiting.keys(), ...running.keys()])].map((account) => ({
    pool,
    account,
    waiting: waiting.get(account)?.jobs ?? 0,
    running: running.get(account)?.jobs ?? 0,
    oldestWaitingAt: waiting.get(account)?.oldestAt,
    oldestRunningAt: running.get(account)?.oldestAt,
  }));
}

type Queue = Awaited<ReturnType<typeof queuesOf>>[number];
/** Accounts whose jobs wait come first. */
const ageOf = ({ oldestWaitingAt, oldestRunningAt }: Queue): number =>
  oldestWaitingAt?.getTime() ?? Number.MAX_SAFE_INTEGER / 2 + (oldestRunningAt?.getTime() ?? 0);

/** Jobs of `/v1/jobs` that have not ended, by pool and account. */
export const jobRoutes = [
  route({
    method: "get",
    path: "/jobs",
    operationId: "listJobQueues",
    summary: "Open jobs by pool and account, the longest wait first",
    description: `At most ${maxAccounts} rows. Counts the ${maxCountedJobs} oldest waiting jobs of a pool, and as many running ones; the overview has the number of all that wait.`,
    query: { pool: z.enum(callPools).optional() },
    answers: { 200: "The queues" },
    answer: listOf(jobQueue).meta({ id: "JobQueueList" }),
    async handle(deps, { query: { pool: wanted } }) {
      const asked = jobsByPool.filter(([pool]) => wanted === undefined || pool === wanted);
      const found = await Promise.all(asked.map(([pool, jobs]) => queuesOf(deps, pool, jobs)));
      const sorted = found.flat().toSorted((one, other) => ageOf(one) - ageOf(other));
      return wholeList(sorted.slice(0, maxAccounts));
    },
  }),
];
