import type { Payments } from "#payments";
import type { Logger } from "#platform/logger";

/** Adds accruals to batches. */
export async function gatherBuybacks({ payments, log }: { payments: Payments; log: Logger }): Promise<void> {
  const gathered = await payments.buyback.gather();
  if (gathered.due > 0) log.info(gathered, "buybacks are due");
}
