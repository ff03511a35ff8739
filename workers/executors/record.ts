import type { Executor } from "./executor.ts";

/** What is due stands in the batch; the operator buys: but not what another executor has sent, which may be bought already. */
export const createRecord = (): Executor => ({
  name: "record",
  execute: ({ sent }) =>
    sent
      ? Promise.reject(
          new Error(`${sent.signature} was sent for it: only the executor that sent it can say what became of it`),
        )
      : Promise.resolve({ kind: "recorded" }),
  close: () => Promise.resolve(),
});
