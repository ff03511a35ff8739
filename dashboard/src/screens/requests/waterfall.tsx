import type { CallWithAttempts } from "../../api/requests.ts";
import { Card } from "../../components/card.tsx";
import { classNames } from "../../components/class-names.ts";
import { duration } from "../../lib/format.ts";
import { type Bar, barsOf } from "../../lib/waterfall.ts";

const colors: Readonly<Record<Bar["tone"], string>> = {
  queue: "bg-series-6",
  attempt: "bg-accent",
  failed: "bg-bad",
  total: "bg-series-2",
};

const smallestPercent = 0.6;

/** Queue, each attempt, first token and total, on one scale, with the same numbers next to the bars. */
export function Waterfall({ call }: { readonly call: CallWithAttempts }) {
  const bars = barsOf(call);
  const end = Math.max(1, ...bars.map(({ startMs, lengthMs }) => startMs + lengthMs));
  if (bars.length === 0) return <p className="text-muted">No times were recorded for this call.</p>;
  return (
    <Card>
      <ol className="flex flex-col gap-3">
        {bars.map((bar, index) => (
          // The steps of a finished call do not change.
          <li key={index} className="grid gap-x-4 gap-y-1 sm:grid-cols-[12rem_minmax(0,1fr)_6rem] sm:items-center">
            <span className="min-w-0 wrap-anywhere">
              {bar.name}
              {bar.note && <span className="text-xs text-muted"> {bar.note}</span>}
            </span>
            <span aria-hidden="true" className="relative block h-4 rounded bg-raised">
              <span
                className={classNames("absolute inset-y-0 rounded", colors[bar.tone])}
                style={{
                  insetInlineStart: `${(bar.startMs / end) * 100}%`,
                  width: `${Math.max(smallestPercent, (bar.lengthMs / end) * 100)}%`,
                }}
              />
            </span>
            <span className="num text-xs text-muted max-sm:text-start">
              {duration(bar.lengthMs)}
              {bar.startMs > 0 && <span className="sr-only"> after {duration(bar.startMs)}</span>}
            </span>
          </li>
        ))}
      </ol>
    </Card>
  );
}
