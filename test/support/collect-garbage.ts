import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Frees what nothing uses. V8 frees the buffers of one collection in the background, at the latest before the next. */
export function collectGarbage(): void {
  collect();
  collect();
}
