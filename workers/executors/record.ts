import type { Executor } from "./executor.ts";

/** What is due stands in the batch; the operator buys. */
export const createRecord = (): Executor => ({
  name: "record",
  execute: () => Promise.resolve({ kind: "recorded" }),
  close: () => Promise.resolve(),
});
