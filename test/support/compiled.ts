import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/**
 * A compile cache for the run: tests start many processes, and each would spend half of its start on compiling the same
 * files. A folder named by the environment is used unchanged.
 */
export default async function setup(): Promise<undefined | (() => Promise<void>)> {
  if (process.env["NODE_COMPILE_CACHE"]) return undefined;
  const folder = await mkdtemp(join(tmpdir(), "inference-compiled-"));
  process.env["NODE_COMPILE_CACHE"] = folder;
  const env = { PATH: process.env["PATH"], NODE_COMPILE_CACHE: folder };
  // A process without configuration ends once everything is imported, which writes the cache; a killed process writes
  // none.
  const ended = ["api", "workers"].map((kind) => run(process.execPath, [`${kind}/main.ts`], { env }));
  await Promise.allSettled(ended);
  return () => rm(folder, { recursive: true, force: true, maxRetries: 5 });
}
