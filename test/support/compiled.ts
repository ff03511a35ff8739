import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/**
 * Node keeps what it compiled of the service for the whole run: a test starts several processes, and each would spend
 * half of its start on compiling the same files again. Whoever names the folder in the environment has filled it.
 */
export default async function setup(): Promise<undefined | (() => Promise<void>)> {
  if (process.env["NODE_COMPILE_CACHE"]) return undefined;
  const folder = await mkdtemp(join(tmpdir(), "inference-compiled-"));
  process.env["NODE_COMPILE_CACHE"] = folder;
  const env = { PATH: process.env["PATH"], NODE_COMPILE_CACHE: folder };
  // Without a configuration a process ends once everything is imported. One that a test kills would keep nothing.
  const ended = ["api", "workers"].map((kind) => run(process.execPath, [`${kind}/main.ts`], { env }));
  await Promise.allSettled(ended);
  return () => rm(folder, { recursive: true, force: true, maxRetries: 5 });
}
