import type { Money } from "#money";

/** Adds new entries to the checkpoints from which the check of the ledger starts. */
export async function checkpointLedger({ money, ending }: { money: Money; ending: AbortSignal }): Promise<void> {
  await money.checkpoint(ending);
}
