import { Link } from "@tanstack/react-router";
import { Money } from "../../components/money.tsx";
import { count, duration } from "../../lib/format.ts";

export interface Outcome {
  readonly requestId: string | null;
  readonly costUsd?: string | undefined;
  /** Not known of a call that a reload has interrupted. */
  readonly totalMs?: number | undefined;
  readonly firstTokenMs?: number | undefined;
  readonly tokens?: { readonly input: number; readonly output: number } | undefined;
  readonly isStopped?: boolean;
}

/** A call's cost and duration. */
export function OutcomeLine({ outcome }: { readonly outcome: Outcome }) {
  const { requestId, costUsd, totalMs, firstTokenMs, tokens, isStopped } = outcome;
  return (
    <p aria-live="polite" className="flex flex-wrap items-baseline gap-x-4 gap-y-1 text-xs text-muted">
      {isStopped && <span>Stopped</span>}
      {costUsd !== undefined && (
        <span className="font-medium text-ink">
          Cost <Money usd={costUsd} />
        </span>
      )}
      {tokens && (
        <span>
          {count(tokens.input)} tokens in, {count(tokens.output)} out
        </span>
      )}
      {firstTokenMs !== undefined && <span>First token {duration(firstTokenMs)}</span>}
      {totalMs !== undefined && <span>Total {duration(totalMs)}</span>}
      {requestId && (
        <Link to="/requests/$id" params={{ id: requestId }} className="text-accent hover:underline">
          Details of the call
        </Link>
      )}
    </p>
  );
}
