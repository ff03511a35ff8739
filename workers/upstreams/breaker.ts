import type { Clock } from "#platform/clock";

/** `unknown` says nothing about the upstream's health (the caller disconnected, the request was refused). */
export type Outcome = "succeeded" | "failed" | "unknown";

const failuresToOpen = 5;
const firstOpenMs = 5_000;
const maxOpenMs = 60_000;
/** Time for which only one account may probe. */
const soleProbeMs = 5_000;
const probeRetryMs = 1_000;

/**
 * A circuit breaker that tells accounts apart, because a request can provoke a 500 or a timeout by its content. It opens
 * for 5 s after 5 failures without a success between them. Then it is half-open: calls probe one at a time, and the first
 * success closes it. A failed probe opens it for twice as long, up to a minute.
 *
 * - Failures of one account open it for that account alone; another account's next success closes it. If one account is
 *   the only caller, it is in effect open.
 * - Failures of two accounts (`accountsToOpen`) open it for everyone.
 * - While it is half-open, a failed probe blocks only its own account, and a slow probe delays the others by 5 s at
 *   most: one account's bad requests cannot keep it open, failed probes of two accounts can.
 *
 * With `accountsToOpen` 1 it opens for everyone, which suits failures that no request can provoke. It remembers only the
 * accounts whose failures count now. docs/adr/0001 says why this is not cockatiel.
 */
export function createBreaker(clock: Clock, accountsToOpen: 1 | 2) {
  let failures = 0;
  const failing = new Set<string>();
  let openMs = 0;
  let openUntil: number | undefined;
  /** It was open for everyone, and nothing has succeeded since. */
  let isRecovering = false;
  /** Calls that were let through while the breaker was half-open. */
  const probes = new Map<string, object>();
  let lastProbeAt = 0;

  const close = () => {
    failures = 0;
    failing.clear();
    openMs = 0;
    openUntil = undefined;
    isRecovering = false;
  };
  const open = () => {
    const wasOver = openUntil === undefined || openUntil <= clock.now();
    if (wasOver) openMs = Math.min(maxOpenMs, openMs === 0 ? firstOpenMs : openMs * 2);
    openUntil = clock.now() + openMs;
    isRecovering ||= failing.size >= accountsToOpen;
  };
  const isFailing = (account: string | undefined) => account !== undefined && failing.has(account);

  return {
    /**
     * Milliseconds until this account may call, 0 if it may call now. Without `account`, the answer is for an account
     * without failures.
     */
    blockedForMs(account?: string): number {
      if (openUntil === undefined) return 0;
      const remainingMs = openUntil - clock.now();
      if (remainingMs > 0 && (failing.size >= accountsToOpen || isFailing(account))) return remainingMs;
      if (!isRecovering && !isFailing(account)) return 0;
      if (account !== undefined && probes.has(account)) return probeRetryMs;
      return probes.size > 0 && clock.now() - lastProbeAt < soleProbeMs ? probeRetryMs : 0;
    },
    /** May be called only while `blockedForMs(account)` is 0. After the call's `end` nothing counts. */
    begin(account: string) {
      const call = {
        /** The upstream responds: this closes the breaker although the rest of a long stream is to come. */
        markResponding(): void {
          if (probes.get(account) === call) close();
        },
        end(outcome: Outcome): void {
          const isProbe = probes.get(account) === call;
          if (isProbe) probes.delete(account);
          // A call that began before the breaker opened says nothing about the upstream's current state.
          const isStale = isRecovering || (openUntil !== undefined && failing.has(account));
          if (isStale && !isProbe) return;
          if (outcome === "succeeded") close();
          if (outcome !== "failed") return;
          failing.add(account);
          if (++failures >= failuresToOpen) open();
        },
      };
      if (openUntil !== undefined && (isRecovering || failing.has(account))) {
        // Only failures of the same round of probes count.
        if (failing.size >= accountsToOpen) failing.clear();
        probes.set(account, call);
        lastProbeAt = clock.now();
      }
      return call;
    },
  };
}

export type Breaker = ReturnType<typeof createBreaker>;
