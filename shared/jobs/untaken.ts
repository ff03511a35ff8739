import type { Redis } from "ioredis";
import { replyKey } from "./frames.ts";
import { untilAnswered } from "./until-answered.ts";

/** Whether the first id of a stream comes before the second. */
function isBefore(first: string, second: string): boolean {
  const [firstMs = 0, firstCount = 0] = first.split("-").map(Number);
  const [secondMs = 0, secondCount = 0] = second.split("-").map(Number);
  return firstMs < secondMs || (firstMs === secondMs && firstCount < secondCount);
}

interface Answer {
  readonly entryId: string;
  readonly onLost: () => void;
}

/**
 * Answers that Redis has and the API instance has not taken yet. An instance trims what it has handed over, so an answer
 * is taken once nothing as old is in its stream; it is lost once the stream is gone with it.
 */
export function createUntaken({ redis, settled }: { redis: Redis; settled: () => boolean }) {
  /** By instance, then by request. */
  const untaken = new Map<string, Map<string, Answer>>();

  async function look(instance: string): Promise<void> {
    const answers = untaken.get(instance);
    if (!answers) return;
    // Only what was there before the question is answered by it.
    const asked = [...answers];
    const key = replyKey(instance);
    const oldest = (await untilAnswered(() => redis.xrange(key, "-", "+", "COUNT", 1)))[0]?.[0];
    const gone = oldest === undefined && (await untilAnswered(() => redis.exists(key))) === 0;
    if (gone && !settled()) return;
    for (const [requestId, { entryId, onLost }] of asked) {
      if (oldest !== undefined && !isBefore(entryId, oldest)) continue;
      answers.delete(requestId);
      if (gone) onLost();
    }
    if (answers.size === 0) untaken.delete(instance);
  }

  return {
    add(instance: string, requestId: string, entryId: string, onLost: () => void): void {
      const answers = untaken.get(instance) ?? new Map<string, Answer>();
      untaken.set(instance, answers.set(requestId, { entryId, onLost }));
    },
    /** To be called once a second. */
    async lookAll(): Promise<void> {
      await Promise.all([...untaken.keys()].map(look));
    },
  };
}
