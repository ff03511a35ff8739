/**
 * Loaded into an API or worker process by `--import`, so that the process itself measures the blocking of its event
 * loop. Listens on a loopback port, which it writes to a file of LOOP_MONITOR_DIR; a response has the measurements
 * since the last one.
 */
import { openSync, readSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { basename, dirname, join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as wait } from "node:timers/promises";
import { isMainThread } from "node:worker_threads";

export interface Held {
  /** The longest delay of the loop. */
  readonly delayMs: number;
  /** The longest delay without the time for which the thread waited for a processor used by other processes. */
  readonly heldMs: number;
}

const resolutionMs = 1;
/** Waits for the timers that measure a delay. */
const settleMs = 10;

/** The time for which this thread has waited for a processor so far. Linux: Documentation/scheduler/sched-stats.rst */
function createWaited(): () => number {
  if (process.platform !== "linux") return () => 0;
  const file = openSync("/proc/thread-self/schedstat", "r");
  const text = Buffer.alloc(128);
  return () => Number(text.toString("latin1", 0, readSync(file, text, 0, text.length, 0)).split(" ")[1]) / 1e6;
}

function listen(dir: string): void {
  const histogram = monitorEventLoopDelay({ resolution: resolutionMs });
  histogram.enable();
  const waitedMs = createWaited();
  let heldMs = 0;
  let last = performance.now();
  let lastWaited = waitedMs();
  setInterval(() => {
    const [now, waited] = [performance.now(), waitedMs()];
    heldMs = Math.max(heldMs, now - last - (waited - lastWaited) - resolutionMs);
    [last, lastWaited] = [now, waited];
  }, resolutionMs).unref();
  const server = createServer((_, res) => {
    res.setHeader("connection", "close");
    void wait(settleMs).then(() => {
      const delayMs = Math.max(0, histogram.max / 1e6 - resolutionMs);
      res.end(JSON.stringify({ delayMs, heldMs } satisfies Held));
      histogram.reset();
      heldMs = 0;
    });
  });
  server.listen(0, "127.0.0.1", () => {
    const { port } = server.address() as AddressInfo;
    writeFileSync(join(dir, basename(dirname(process.argv[1] ?? "idle/main.ts"))), String(port));
  });
  server.unref();
}

const { LOOP_MONITOR_DIR } = process.env;
if (isMainThread && LOOP_MONITOR_DIR) listen(LOOP_MONITOR_DIR);
