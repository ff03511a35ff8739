import type { Money } from "#money";

/** Counts what was decided since into the checkpoints that the check of the ledger starts from. */
export async function checkpointLedger({ money, ending }: { money: Money; ending: AbortSignal }): Promise<void> {
  await money.checkpoint(ending);
}
