import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { readAftermath } from "./aftermath.ts";
import type { RunLog } from "./run-log.ts";
import { startWorld, type World } from "./world.ts";

/** The frame of chaos and soak: a world that ends with this process, and the log of what happened in it. */

export const say = (text: string) => void process.stdout.write(`${text}\n`);

/** Exits with 1 if `isBroken` returns true. */
export async function runIn(
  dataDir: string,
  options: Omit<Parameters<typeof startWorld>[0], "dataDir">,
  isBroken: (world: World) => Promise<boolean>,
): Promise<never> {
  await rm(dataDir, { recursive: true, force: true });
  await mkdir(dataDir, { recursive: true });
  const world = await startWorld({ dataDir, ...options });
  let stopping: Promise<void> | undefined;
  const stop = () => (stopping ??= world.stop());
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.once(signal, () => void stop().finally(() => process.exit(1)));
  try {
    process.exitCode = (await isBroken(world)) ? 1 : 0;
  } finally {
    await stop();
  }
  process.exit();
}

export const dataDirOf = (name: string): string => join(import.meta.dirname, "../../../.data", name);

/** The log of the calls and faults, once everything open has had its time to end. */
export async function logOf(world: World, done: Pick<RunLog, "calls" | "faults">): Promise<RunLog> {
  const { crashes, peakBytes, providers } = world;
  const aftermath = await readAftermath(world, done, say);
  return { ...done, runs: providers.runs, counts: providers.counts, crashes, peakBytes, ...aftermath };
}
