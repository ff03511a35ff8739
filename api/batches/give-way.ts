/** Lines a second that always begin. They cost a few percent of one processor. */
const fewest = 20;
const more = 10;
/** A process is busy if its event loop is active for this part of the time. */
const busyFrom = 0.5;

export interface Load {
  /** Lines that began, a second. */
  readonly begun: number;
  /** Live calls that run. */
  readonly calls: number;
  /** The part of the time for which event loops were active, from 0 to 1. */
  readonly utilization: number;
}

/**
 * How many lines may begin in a second from now on. Lines take processor time mainly when they begin and end, so that is
 * what gives way while processes are busy and live calls run: half of the lines each time, as congestion control does, and
 * then slowly more. Without live calls there is no limit.
 */
export function nextRate(rate: number, { begun, calls, utilization }: Load): number {
  if (calls === 0) return Number.POSITIVE_INFINITY;
  if (utilization < busyFrom) return rate + more;
  return Math.max(fewest, Math.min(rate, begun) / 2);
}
