import type { Batch } from "../../api/batches.ts";
import { paceOf, paceText } from "../../lib/batch-pace.ts";
import { remaining, useNow } from "../../lib/time.ts";

/** The mean rate and the time left while lines run. */
export function BatchPace({ batch }: { readonly batch: Batch }) {
  const now = useNow();
  const pace = paceOf(batch, now);
  if (!pace) return <span className="text-muted">–</span>;
  return (
    <span className="flex flex-col tabular-nums in-[td]:whitespace-nowrap">
      <span>{paceText(pace)}</span>
      <span className="text-xs font-normal text-muted">about {remaining(pace.estimatedEnd, now)} left</span>
    </span>
  );
}
