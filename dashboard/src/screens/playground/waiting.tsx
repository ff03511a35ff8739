import { useQuery } from "@tanstack/react-query";
import { runningQuery } from "../../api/running.ts";
import { ProgressBar } from "../../components/progress-bar.tsx";
import { useNow } from "../../lib/time.ts";

interface Props {
  readonly model: string;
  readonly sinceMs: number;
}

function stageOf(position: number | null | undefined): string {
  if (position === undefined) return "Sent";
  if (position === null) return "The model is working";
  return position <= 1 ? "Next in the queue" : `Number ${position} in the queue`;
}

/** The progress of a pending call. */
export function Waiting({ model, sinceMs }: Props) {
  const now = useNow();
  const { data: calls = [] } = useQuery(runningQuery);
  const call = calls.find((each) => each.model === model);
  const seconds = Math.max(0, Math.floor((now - sinceMs) / 1000));
  return (
    <div className="flex flex-col gap-4 py-6">
      <p aria-live="polite" className="text-base font-medium">
        {stageOf(call?.position)}
      </p>
      <ProgressBar label="The call is under way" />
      <p className="text-muted tabular-nums">{seconds} s so far</p>
    </div>
  );
}
