import { type BackendFactory, createRedisBackend, Job, type RedisQueueBackend } from "bullmq";
import { groupCommit } from "#platform/concurrency/group-commit";
import type { RedisClient } from "#platform/redis";
import { createScriptRunner } from "#platform/redis-scripts";
import { isCallQueue } from "./catalog.ts";

/** Adds a job, unless there is one with its id. */
const addScript = `
local job, prioritized, counter, marker = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, name, data, opts, timestamp, priority = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
if redis.call('EXISTS', job) == 1 then return 0 end
redis.call('HSET', job, 'name', name, 'data', data, 'opts', opts, 'timestamp', timestamp, 'delay', 0, 'priority', priority)
redis.call('ZADD', prioritized, priority * 0x100000000 + redis.call('INCR', counter) % 0x100000000, id)
redis.call('ZADD', marker, 0, '0')
return 1`;

/**
 * Takes the first job of the highest priority. Returns 0 if there may be a job that only BullMQ's own script can take: one
 * that stalled or was handed over, or any of a paused or limited queue. The marker wakes the next worker if jobs remain.
 */
const takeScript = `
local prioritized, active, marker, wait, delayed, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local jobs, token, lockMs, now = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if redis.call('EXISTS', wait, delayed) > 0 then return 0 end
local limits = redis.call('HMGET', meta, 'paused', 'concurrency', 'max')
if limits[1] or limits[2] or limits[3] then return 0 end
local id = redis.call('ZPOPMIN', prioritized)[1]
if not id then return nil end
local job = jobs .. id
redis.call('LPUSH', active, id)
redis.call('SET', job .. ':lock', token, 'PX', lockMs)
redis.call('HSET', job, 'processedOn', now)
if redis.call('EXISTS', prioritized) == 1 then redis.call('ZADD', marker, 0, '0') end
return {id, redis.call('HINCRBY', job, 'ats', 1), unpack(redis.call('HMGET', job, 'name', 'data', 'opts', 'timestamp', 'priority'))}`;

/** Removes the jobs that their workers still have. Returns 1 for each of them, and 0 for the others. */
const completeScript = `
local active, stalled = KEYS[1], KEYS[2]
local removed = {}
for i = 2, #ARGV, 2 do
  local id, job = ARGV[i], ARGV[1] .. ARGV[i]
  local isHeld = redis.call('GET', job .. ':lock') == ARGV[i + 1]
  if isHeld then
    redis.call('DEL', job, job .. ':lock')
    redis.call('LREM', active, -1, id)
    redis.call('SREM', stalled, id)
  end
  removed[#removed + 1] = isHeld and 1 or 0
end
return removed`;

type Keys = Record<"prioritized" | "active" | "stalled" | "marker" | "wait" | "delayed" | "meta" | "pc", string>;
type TakenJob = readonly [
  id: string,
  starts: number,
  name: string,
  data: string,
  opts: string,
  timestamp: string,
  priority: string,
];

/** Jobs that are removed by one script. Redis does nothing else while it runs. */
const maxCompleted = 100;

/**
 * BullMQ's Redis backend for queues of calls, with shorter scripts for what happens to each job: it is added with a priority,
 * taken, and removed once it is completed. They keep BullMQ's layout, and leave everything else to its own scripts: jobs
 * that stall, fail or are delayed (docs/adr/0043-hand-over.md).
 */
const callBackend =
  (redis: RedisClient): BackendFactory<RedisQueueBackend> =>
  (queue, options, connections) => {
    const backend = createRedisBackend(queue, options, connections);
    const { prioritized, active, stalled, marker, wait, delayed, meta, pc } = backend.keys as Keys;
    const jobs = backend.toKey("");
    const { lockDuration = 0 } = options as { readonly lockDuration?: number };
    const runScript = createScriptRunner(redis);
    const own = {
      addJob: backend.addJob.bind(backend),
      moveToActive: backend.moveToActive.bind(backend),
      moveToCompleted: backend.moveToCompleted.bind(backend),
    };

    const complete = groupCommit<{ readonly id: string; readonly token: string }, void>({
      limit: maxCompleted,
      async write(_, ended) {
        const args = ended.flatMap(({ id, token }) => [id, token]);
        const removed = (await runScript(completeScript, [active, stalled], [jobs, ...args])) as number[];
        return removed.map((isRemoved) => (isRemoved ? undefined : new Error("The lock of the job is lost.")));
      },
    });

    return Object.assign(backend, {
      async addJob(...added: Parameters<typeof own.addJob>) {
        const [{ name, data, opts, timestamp }, id] = added;
        const { priority = 0, delay = 0 } = opts;
        if (priority === 0 || delay > 0) return own.addJob(...added);
        const args = [id, name, data, JSON.stringify(opts), timestamp, priority];
        await runScript(addScript, [backend.toKey(id), prioritized, pc, marker], args);
        return id;
      },

      async moveToActive(token: string, worker?: string) {
        const args = [jobs, token, lockDuration, Date.now()];
        const taken = await runScript(takeScript, [prioritized, active, marker, wait, delayed, meta], args);
        if (taken === 0) return own.moveToActive(token, worker);
        if (!taken) return [undefined, undefined, 0, 0];
        const [id, attemptsStarted, name, data, opts, timestamp, priority] = taken as TakenJob;
        const job = { id, name, data, attemptsStarted, opts: Job.optsFromJSON(opts) };
        return [{ ...job, timestamp: Number(timestamp), priority: Number(priority) }, id, 0, 0];
      },

      async moveToCompleted(...completed: Parameters<typeof own.moveToCompleted>) {
        const [job, , removeOnComplete, token, fetchNext] = completed;
        if (removeOnComplete !== true || fetchNext || job.id === undefined) return own.moveToCompleted(...completed);
        await complete("", `${job.id} ${token}`, { id: job.id, token });
        return { result: undefined, finishedOn: Date.now() };
      },
    });
  };

/** The backend of a queue, for the constructors of BullMQ's `Queue` and `Worker`. */
export const backendOf = (queue: string, redis: RedisClient): BackendFactory<RedisQueueBackend> =>
  isCallQueue(queue) ? callBackend(redis) : createRedisBackend;
