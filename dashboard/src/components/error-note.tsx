import { ApiError } from "../api/client.ts";
import { Button } from "./button.tsx";

/** Tells the user what to do about an error. */
function advice(error: unknown): string {
  if (!(error instanceof ApiError)) return "Reload the page. If it happens again, tell the operator what you did.";
  if (error.status === 0) return "Check your connection, then try again.";
  if (error.status === 401) return "Reload the page and sign in again.";
  if (error.code === "insufficient_balance") return "Top up the balance, then try again.";
  if (error.code === "budget_exceeded") return "Raise the budget of this key, or wait until it resets.";
  if (error.code === "insufficient_scope") return "Sign in with a key that has the scope this needs.";
  if (error.code === "account_frozen") return "Ask the operator to unfreeze the account.";
  if (error.status === 429) return "Wait a moment, then try again.";
  if (error.status === 503) return "The service is busy or restarting. Try again in a few seconds.";
  if (error.code === "not_configured") return "Ask the operator to set it up.";
  if (error.status >= 500) return "Try again. If it happens again, send the operator the request id below.";
  if (error.status === 410) return "It is gone. Make it anew if you need it.";
  if (error.status === 404) return "It may be gone, or belong to another account.";
  return "Correct this and try again.";
}

interface Props {
  readonly error: unknown;
  /** Replaces the advice that follows from the error. */
  readonly todo?: string | undefined;
  readonly onRetry?: (() => unknown) | undefined;
}

export function ErrorNote({ error, todo, onRetry }: Props) {
  const { requestId } = error instanceof ApiError ? error : {};
  return (
    <div role="alert" className="flex flex-col items-start gap-2 rounded-xl border border-bad/40 bg-bad-soft p-4">
      <p className="font-medium wrap-anywhere text-bad">{error instanceof Error ? error.message : String(error)}</p>
      <p className="text-ink">{todo ?? advice(error)}</p>
      {requestId && <p className="text-xs wrap-anywhere text-muted">Request id: {requestId}</p>}
      {onRetry && (
        <Button small onClick={() => void onRetry()}>
          Try again
        </Button>
      )}
    </div>
  );
}
