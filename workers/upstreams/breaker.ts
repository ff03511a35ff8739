import type { Clock } from "#platform/clock";

/**
 * Opens after 5 failures without a success between them, for 5 s; then it is half open: calls probe one at a time, and the
 * first success closes it. A probe that fails opens it for twice as long, up to a minute.
 *
 * For whom it opens depends on who saw the failures, because a request can provoke a 500 or a timeout by its content:
 *
 * - Failures of one account open it for that account alone. Others are not held up, and their next success closes it.
 * - Failures of two accounts (`accountsToOpen`) open it for everyone. Where one account is the only caller, what opens for
 *   that account is all there is to open.
 * - While it is half open, a failed probe of one account keeps only that account out, and a probe that takes long keeps
 *   the others waiting for 5 s at most: one account's bad requests cannot keep it open. Two accounts' failed probes can.
 *
 * With `accountsToOpen` 1 it opens for everyone, whoever calls: for failures that no request can provoke.
 *
 * Of the accounts it remembers those whose failures count now: a handful, however many there are.
 *
 * cockatiel's breaker was weighed: it reads the clock of the machine, takes a disconnected caller for a success of the
 * probe, and keeps all others waiting until the probe has ended, where they could go elsewhere.
 */
export interface Breaker {
  /** Milliseconds until a call of this account may be sent, 0 if it may now; without an account: of one without failures. */
  closedForMs(account?: string): number;
  /** Only while `closedForMs(account)` is 0. */
  begin(account: string): Report;
}

/** `unknown`: it says nothing of the upstream's health (the caller disconnected, the request was refused). */
export type Outcome = "succeeded" | "failed" | "unknown";

/** What one call tells its breaker. After `end` nothing counts. */
export interface Report {
  /** The upstream answers: that is enough to close the breaker, though the rest of a long stream is to come. */
  answered(): void;
  end(outcome: Outcome): void;
}

const failuresToOpen = 5;
const firstOpenMs = 5_000;
const longestOpenMs = 60_000;
const probeAloneMs = 5_000;
const whileProbingMs = 1_000;

export function createBreaker(clock: Clock, accountsToOpen: 1 | 2): Breaker {
  let failures = 0;
  const failing = new Set<string>();
  let openMs = 0;
  let openUntil: number | undefined;
  /** It was open for everyone, and nothing has succeeded since. */
  let recovering = false;
  const probes = new Map<string, Report>();
  let lastProbeAt = 0;

  const close = () => {
    failures = 0;
    failing.clear();
    openMs = 0;
    openUntil = undefined;
    recovering = false;
  };
  const open = () => {
    const isOver = openUntil === undefined || openUntil <= clock.now();
    if (isOver) openMs = Math.min(longestOpenMs, openMs === 0 ? firstOpenMs : openMs * 2);
    openUntil = clock.now() + openMs;
    recovering ||= failing.size >= accountsToOpen;
  };
  const isFailing = (account: string | undefined) => account !== undefined && failing.has(account);

  return {
    closedForMs(account) {
      if (openUntil === undefined) return 0;
      const leftMs = openUntil - clock.now();
      if (leftMs > 0 && (failing.size >= accountsToOpen || isFailing(account))) return leftMs;
      if (!recovering && !isFailing(account)) return 0;
      if (account !== undefined && probes.has(account)) return whileProbingMs;
      return probes.size > 0 && clock.now() - lastProbeAt < probeAloneMs ? whileProbingMs : 0;
    },
    begin(account) {
      const report: Report = {
        answered() {
          if (probes.get(account) === report) close();
        },
        end(outcome) {
          const isProbe = probes.get(account) === report;
          if (isProbe) probes.delete(account);
          // A call that began before the breaker opened says nothing of the upstream as it is now.
          const isStale = recovering || (openUntil !== undefined && failing.has(account));
          if (isStale && !isProbe) return;
          if (outcome === "succeeded") close();
          if (outcome !== "failed") return;
          failing.add(account);
          if (++failures >= failuresToOpen) open();
        },
      };
      if (openUntil !== undefined && (recovering || failing.has(account))) {
        // Of a round of probes only its own failures count.
        if (failing.size >= accountsToOpen) failing.clear();
        probes.set(account, report);
        lastProbeAt = clock.now();
      }
      return report;
    },
  };
}
