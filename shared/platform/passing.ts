import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Less than what V8 lets gather of its own accord: twice the young generation, tens of megabytes. */
const everyBytes = 16 * 1024 * 1024;

let passedBytes = 0;
let collectYoung: ((options: { type: "minor"; execution: "sync" }) => void) | undefined;

/**
 * To be told of every chunk of a large file that only passes through this process. Chunks leave small objects with much
 * memory outside of the heap, which V8 frees late: ten large uploads at once made resident memory swing by 30 to 90 MB
 * (`npm run bench -- --uploads`). Collecting the young generation every few megabytes takes a millisecond and keeps it flat;
 * a smaller young generation does so too, but cost chat calls a fifth of their rate.
 */
export function passing(bytes: number): void {
  passedBytes += bytes;
  if (passedBytes < everyBytes) return;
  passedBytes = 0;
  collectYoung ??= exposeCollector();
  collectYoung({ type: "minor", execution: "sync" });
}

function exposeCollector(): NonNullable<typeof collectYoung> {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as NonNullable<typeof collectYoung>;
}
