import { openQueue } from "./jobs-setup.ts";
import type { Stores } from "./servers.ts";
import { eventually } from "./service.ts";

/** Enqueues scheduled jobs at once, and waits until a worker has finished them. */
export async function openMaintenance(stores: Stores) {
  const queue = await openQueue(stores, "maintenance");
  const add = (name: string) => queue.add(name, { v: 1 });

  async function run(name: string): Promise<void> {
    const job = await add(name);
    await eventually(async () => {
      const state = await job.getState();
      if (state === "failed") throw new Error(`${name} failed`);
      return state === "completed" || state === "unknown";
    });
  }

  /** Repeats the jobs until the condition holds: a worker skips a job that it already runs. */
  const runUntil = <T>(names: readonly string[], ask: () => Promise<T | undefined | false>): Promise<T> =>
    eventually(async () => {
      for (const name of names) await run(name);
      return ask();
    });
  return { add, run, runUntil };
}
