import { z } from "zod";
import { jobCatalog, type PaidCall, type PaidJobName, type Pool, type Queues } from "#jobs";
import type { Caller } from "#keys";
import type { Uses } from "#platform/uses";

const record = z.object({
  key: z.string(),
  endpoint: z.string(),
  model: z.string(),
  pool: z.enum(["image", "media"]),
  startedAt: z.number(),
});
type Call = Pick<PaidCall, "requestId" | "account" | "keyId" | "endpoint" | "model" | "acceptedAt" | "deadlineAt">;

interface RunningCall extends z.infer<typeof record> {
  readonly id: string;
  /** Its place among the calls that wait in its pool, from 1. Null once a worker has it. */
  readonly position: number | null;
  readonly elapsedMs: number;
}

/** Limits an answer to the newest calls. */
const maxShown = 100;
/** Longer than it takes to record the end of a call. */
const marginMs = 60_000;
const nameOf = (account: string) => `running:{${account}}`;

/**
 * The calls for images and media that an account has in flight, in all API instances: those that a person waits for. Calls
 * of the text pools are not recorded, so they have no extra cost. Owns the Redis keys `running:*`. Nothing depends on them:
 * the queue knows which of them still run.
 */
export function createRunningCalls({ redis, queues, clock }: Uses<"redis" | "clock"> & { queues: Queues }) {
  return {
    begin: async (job: PaidJobName, call: Call): Promise<void> => {
      const { requestId, account, keyId: key, endpoint, model, acceptedAt: startedAt, deadlineAt } = call;
      const name = nameOf(account);
      const noted = { key, endpoint, model, pool: jobCatalog[job].pool, startedAt };
      const expiresAt = Math.ceil(deadlineAt + marginMs);
      await redis.multi().hset(name, requestId, JSON.stringify(noted)).pexpireat(name, expiresAt).exec();
    },

    end: async ({ requestId, account }: Call): Promise<void> => {
      await redis.hdel(nameOf(account), requestId);
    },

    /** Lists calls, newest first. A key without the scope `manage` sees only its own calls. */
    async list({ account, keyId, scopes }: Caller): Promise<RunningCall[]> {
      const noted = Object.entries(await redis.hgetall(nameOf(account)))
        .map(([id, json]) => ({ id, ...record.parse(JSON.parse(json)) }))
        .filter(({ key }) => scopes.includes("manage") || key === keyId)
        .toSorted((one, other) => other.startedAt - one.startedAt)
        .slice(0, maxShown);
      const now = clock.now();
      const placed = await Promise.all(
        noted.map(async (call) => ({ call, place: await queues.placeOf(call.pool as Pool, account, call.id) })),
      );
      const ended = placed.flatMap(({ call, place }) => (place === undefined ? [call.id] : []));
      if (ended.length > 0) await redis.hdel(nameOf(account), ...ended);
      return placed.flatMap(({ call, place }) =>
        place === undefined
          ? []
          : [{ ...call, position: place === "running" ? null : place, elapsedMs: Math.max(0, now - call.startedAt) }],
      );
    },
  };
}

export type RunningCalls = ReturnType<typeof createRunningCalls>;
