import type { ReactNode } from "react";
import { count } from "../lib/format.ts";
import { statusLabel } from "../lib/statuses.ts";
import { Badge, type Tone } from "./badge.tsx";
import { ProgressBar } from "./progress-bar.tsx";

/** The state of a batch, for its owner and for operators. */

const tones = {
  validating: "plain",
  in_progress: "accent",
  finalizing: "accent",
  cancelling: "warn",
  completed: "good",
  failed: "bad",
  expired: "warn",
  cancelled: "warn",
} as const satisfies Readonly<Record<string, Tone>>;
type Status = keyof typeof tones;

interface StatusProps {
  readonly status: Status;
  /** Why no line begins. */
  readonly paused: string | null;
  /** More badges. */
  readonly children?: ReactNode;
}

export const BatchStatus = ({ status, paused, children }: StatusProps) => (
  <span className="flex flex-wrap gap-1.5">
    <Badge tone={tones[status]}>{statusLabel(status)}</Badge>
    {paused !== null && <Badge tone="warn">Paused: {paused.replaceAll("_", " ")}</Badge>}
    {children}
  </span>
);

interface CallsProps {
  readonly model: string | null;
  readonly endpoint: string;
}

/** The model and the endpoint of its calls. */
export const BatchCalls = ({ model, endpoint }: CallsProps) => (
  <span className="flex min-w-0 flex-col sm:min-w-36">
    <span className="wrap-anywhere">{model ?? "–"}</span>
    <span className="text-xs wrap-anywhere text-muted">{endpoint}</span>
  </span>
);

interface ProgressProps {
  readonly status: Status;
  readonly total: number;
  readonly completed: number;
  readonly failed: number;
}

/** The lines that have ended, and how many of them failed. */
export function BatchProgress({ status, total, completed, failed }: ProgressProps) {
  if (status === "failed") return <span className="text-muted">–</span>;
  if (status === "validating") return <ProgressBar label="Validation" />;
  const ended = completed + failed;
  return (
    <span className="flex min-w-32 flex-col gap-1">
      <ProgressBar label="Progress" value={total > 0 ? ended / total : 1} tone={failed > 0 ? "warn" : "accent"} />
      <span className="text-xs whitespace-nowrap tabular-nums">
        {count(ended)} of {count(total)}
        {failed > 0 && <span className="text-bad">, {count(failed)} failed</span>}
      </span>
    </span>
  );
}
