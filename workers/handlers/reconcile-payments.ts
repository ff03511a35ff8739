import type { Payments } from "#payments";
import type { Logger } from "#platform/logger";

/** Decides payments of unknown outcome from the chain. */
export async function reconcilePayments({ payments, log }: { payments: Payments; log: Logger }): Promise<void> {
  if (!payments.x402) return;
  const reconciled = await payments.x402.reconcile();
  if (reconciled.settled + reconciled.reopened > 0) log.warn(reconciled, "payments were decided from the chain");
}
