interface Running {
  readonly status: string;
  readonly in_progress_at: number | null;
  readonly x_paused: string | null;
  readonly request_counts: { readonly total: number; readonly completed: number; readonly failed: number };
}

export interface Pace {
  readonly linesPerSecond: number;
  /** Unix seconds. */
  readonly estimatedEnd: number;
}

/** The mean pace of a batch since its first line. Undefined while no line runs, or before one has ended. */
export function paceOf({ status, in_progress_at: began, x_paused, request_counts }: Running, nowMs: number) {
  const ended = request_counts.completed + request_counts.failed;
  if (status !== "in_progress" || x_paused !== null || began === null || ended === 0) return undefined;
  const linesPerSecond = ended / Math.max(1, nowMs / 1000 - began);
  const left = request_counts.total - ended;
  return { linesPerSecond, estimatedEnd: nowMs / 1000 + left / linesPerSecond } satisfies Pace;
}

const number = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 2 });

export function paceText({ linesPerSecond }: Pace): string {
  const [rate, unit] = linesPerSecond >= 1 ? [linesPerSecond, "s"] : [linesPerSecond * 60, "min"];
  const text = number.format(rate);
  return `${text} ${text === "1" ? "line" : "lines"}/${unit}`;
}
