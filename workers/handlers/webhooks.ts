import type { ClusterStats } from "#cluster-stats";
import type { JobPayload, Queues } from "#jobs";
import type { Clock } from "#platform/clock";
import type { Webhooks } from "#webhooks";

interface Deps {
  readonly webhooks: Pick<Webhooks, "sending">;
  readonly queues: Pick<Queues, "enqueueReceivers">;
}

/** Receivers that are read and enqueued together. */
const pageSize = 1_000;

/** Enqueues the receivers with due deliveries. Those that have a queue job are unaffected. */
export async function enqueueWebhooks(
  deps: Deps & { readonly clusterStats: Pick<ClusterStats, "write">; readonly clock: Clock },
): Promise<void> {
  const { webhooks, queues, clusterStats, clock } = deps;
  let dueSince: number | undefined;
  for (let after = ""; ; ) {
    const due = await webhooks.sending.due(pageSize, after);
    await queues.enqueueReceivers(due);
    const last = due.at(-1);
    for (const { since } of due) dueSince = Math.min(dueSince ?? since.getTime(), since.getTime());
    if (!last || due.length < pageSize) break;
    after = last.receiver;
  }
  await clusterStats.write({ webhooks: { at: clock.now(), ...(dueSince !== undefined && { dueSince }) } });
}

export async function enqueueIfDue(
  { webhooks, queues }: Deps,
  receiver: Omit<JobPayload<"send-webhooks">, "v">,
): Promise<void> {
  if (await webhooks.sending.find(receiver)) await queues.enqueueReceivers([receiver]);
}
