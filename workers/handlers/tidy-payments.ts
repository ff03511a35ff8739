import type { Payments } from "#payments";
import type { Logger } from "#platform/logger";

/** Removes the accounts of payments that are spent and expired. */
export async function tidyPayments({ payments, log }: { payments: Payments; log: Logger }): Promise<void> {
  const removed = await payments.unused.removeSpent();
  if (removed > 0) log.info({ removed }, "accounts of payments were removed");
}
