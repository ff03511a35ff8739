export type { BuybackExecutor, DueBatch, Execution, SentTransaction } from "./executor.ts";
