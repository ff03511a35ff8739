import type { Clock } from "#platform/clock";

/**
 * Open after 5 failures without a success between them, for 5 s; then one call may try. If it fails too, twice as long,
 * up to a minute. cockatiel's breaker was weighed: it reads the clock of the machine, takes a caller who leaves for a
 * success of the call that tries, and keeps all others waiting until that call has ended, where they could go elsewhere.
 */
export interface Breaker {
  /** Milliseconds until a call may be sent; 0 if it may now. */
  closedForMs(): number;
  /** Only while `closedForMs()` is 0. */
  begin(): Trial;
}

/** `unknown`: it says nothing of the upstream's health (the caller left, the request was refused). */
export type Outcome = "succeeded" | "failed" | "unknown";

/** What one call tells its breaker. After `end` nothing counts. */
export interface Trial {
  /** The upstream answers: that is enough to close the breaker, though the rest of a long stream is to come. */
  answered(): void;
  end(outcome: Outcome): void;
}

const failuresToOpen = 5;
const firstOpenMs = 5_000;
const longestOpenMs = 60_000;
const whileTryingMs = 1_000;

export function createBreaker(clock: Clock): Breaker {
  let failures = 0;
  let openMs = 0;
  let openUntil: number | undefined;
  let trying: Trial | undefined;

  const close = () => {
    failures = 0;
    openMs = 0;
    openUntil = undefined;
  };
  const open = () => {
    openMs = Math.min(longestOpenMs, openMs === 0 ? firstOpenMs : openMs * 2);
    openUntil = clock.now() + openMs;
  };

  return {
    closedForMs() {
      if (openUntil === undefined) return 0;
      const left = openUntil - clock.now();
      if (left > 0) return left;
      return trying ? whileTryingMs : 0;
    },
    begin() {
      const trial: Trial = {
        answered() {
          if (trying === trial) close();
        },
        end(outcome) {
          // What began before the breaker opened says nothing of the upstream as it is now.
          const counts = openUntil === undefined || trying === trial;
          if (trying === trial) trying = undefined;
          if (!counts) return;
          if (outcome === "succeeded") close();
          else if (outcome === "failed" && (++failures >= failuresToOpen || openUntil !== undefined)) open();
        },
      };
      if (openUntil !== undefined) trying = trial;
      return trial;
    },
  };
}
