import { pools, type Queues } from "#jobs";
import type { Money } from "#money";
import type { Logger } from "#platform/logger";

/** Ends expired holds: applies what is decided, and settles at zero the calls that are in no queue. */
export async function sweepHolds({ money, queues, log }: { money: Money; queues: Queues; log: Logger }): Promise<void> {
  const isPending = async (requestId: string) => {
    const pending = await Promise.all(pools.map((pool) => queues.isPending(pool, requestId)));
    return pending.includes(true);
  };
  const swept = await money.sweep(isPending);
  if (swept.applied + swept.decided > 0) log.warn(swept, "overdue holds were ended");
}
