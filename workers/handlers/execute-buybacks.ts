import type { Payments } from "#payments";
import type { Logger } from "#platform/logger";
import type { Executor } from "../executors/index.ts";

interface Deps {
  readonly payments: Payments;
  readonly executor: Executor | undefined;
  readonly ending: AbortSignal;
  readonly log: Logger;
}

/** Passes due batches to the executor. */
export async function executeBuybacks({ payments, executor, ending, log }: Deps): Promise<void> {
  if (!executor) return;
  const executed = await payments.buyback.execute(executor, ending);
  if (executed.done > 0) log.info({ ...executed, executor: executor.name }, "buybacks were executed");
}
