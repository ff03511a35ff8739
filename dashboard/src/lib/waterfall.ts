import type { CallWithAttempts } from "../api/requests.ts";

export interface Bar {
  readonly name: string;
  readonly note: string;
  readonly startMs: number;
  readonly lengthMs: number;
  readonly tone: "queue" | "attempt" | "failed" | "total";
}

/** The steps of a call, in milliseconds since it was accepted. */
export function barsOf(call: CallWithAttempts): readonly Bar[] {
  const { attempts, queue_ms, first_token_ms, total_ms } = call;
  const bars: Bar[] = [];
  if (queue_ms !== null) bars.push({ name: "Queue", note: "", startMs: 0, lengthMs: queue_ms, tone: "queue" });
  for (const { upstream, credential, model, started_ms, duration_ms, outcome, status, code } of attempts) {
    const hasFailed = outcome !== "succeeded";
    const own = credential === "shared" ? undefined : "own key";
    const reasons = [own, model, hasFailed ? outcome : undefined, status, code].filter((part) => part !== undefined);
    bars.push({
      name: upstream ?? "Upstream",
      note: reasons.join(" · "),
      startMs: started_ms ?? 0,
      lengthMs: duration_ms ?? 0,
      tone: hasFailed ? "failed" : "attempt",
    });
  }
  if (first_token_ms !== null)
    bars.push({ name: "First token", note: "", startMs: 0, lengthMs: first_token_ms, tone: "queue" });
  if (total_ms !== null) bars.push({ name: "Total", note: "", startMs: 0, lengthMs: total_ms, tone: "total" });
  return bars;
}
