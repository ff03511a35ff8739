import type { Payments } from "#payments";
import type { Logger } from "#platform/logger";

/** Decides from the chain how payments ended that nobody knows the end of. */
export async function reconcilePayments({ payments, log }: { payments: Payments; log: Logger }): Promise<void> {
  if (!payments.x402) return;
  const reconciled = await payments.x402.reconcile();
  if (reconciled.settled + reconciled.reopened > 0) log.warn(reconciled, "payments were decided from the chain");
}
