import { readdir, readFile } from "node:fs/promises";

let limit: Promise<number> | undefined;

/** The process's limit (`ulimit -n`). */
async function readLimit(): Promise<number> {
  const limits = await readFile("/proc/self/limits", "utf8").catch(() => "");
  return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Number.POSITIVE_INFINITY);
}

/** Rejects if the process has less than a tenth of its file descriptors left. Knows of none without Linux's /proc. */
export async function checkDescriptors(): Promise<void> {
  limit ??= readLimit();
  const most = await limit;
  if (!Number.isFinite(most)) return;
  const { length } = await readdir("/proc/self/fd");
  if (length > 0.9 * most) throw new Error(`${length} of ${most} file descriptors are open`);
}
