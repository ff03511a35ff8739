import { pools, type Queues } from "#jobs";
import type { Money } from "#money";
import type { Logger } from "#platform/logger";

/** Ends holds past their time: applies what is decided, decides 0 what no queue has any more. */
export async function sweepHolds({ money, queues, log }: { money: Money; queues: Queues; log: Logger }): Promise<void> {
  const isPending = async (requestId: string) => {
    const pending = await Promise.all(pools.map((pool) => queues.isPending(pool, requestId)));
    return pending.includes(true);
  };
  const swept = await money.sweep(isPending);
  if (swept.applied + swept.decided > 0) log.warn(swept, "overdue holds were ended");
}
