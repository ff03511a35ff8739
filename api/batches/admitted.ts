import type { FileLine, StoredLine } from "#batches";
import type { LineCall } from "./line-calls.ts";

/** A line of a group that is admitted together. */
export interface Admitted {
  readonly read: FileLine;
  /** The line as it was postponed. */
  readonly tried?: StoredLine | undefined;
  /** Undefined if it cannot begin now. A line without a call was refused. */
  readonly line: LineCall | StoredLine | undefined;
}

export const isCall = (line: Admitted["line"]): line is LineCall => line !== undefined && "slot" in line;

/** Lines are taken in their order, so those after one that cannot begin wait. */
export function takenOf(admitted: readonly Admitted[]): readonly Admitted[] {
  const stop = admitted.findIndex(({ line, tried }) => !tried && !line);
  return admitted.filter(({ tried, line }, at) => line && (tried || stop < 0 || at < stop));
}
