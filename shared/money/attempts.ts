/**
 * The attempts of a call at upstreams, as the ledger stores them. Names are short and fields that equal the entry's are
 * omitted, because most entries have one successful attempt: it takes 30 bytes more than a bare number.
 */

export const attemptOutcomes = ["succeeded", "failed", "refused", "busy", "timeout", "cancelled"] as const;
export type AttemptOutcome = (typeof attemptOutcomes)[number];

export interface Attempt {
  /** Entries written before attempts were recorded lack it, like the two times. */
  readonly upstream: string | undefined;
  /** Set if it differs from the entry's model. */
  readonly model?: string | undefined;
  /** The id of the account's provider key with which it was made. Unset for the operator's. */
  readonly key?: string | undefined;
  /** Milliseconds since the call was accepted. */
  readonly startedMs: number | undefined;
  readonly durationMs: number | undefined;
  readonly outcome: AttemptOutcome;
  /** The HTTP status of a failed upstream, and the code of a refusal. */
  readonly status?: number | undefined;
  readonly code?: string | undefined;
}

interface StoredAttempt {
  /** Upstream and model, if they differ from the entry's. Null if unknown. */
  readonly u?: string | null | undefined;
  readonly m?: string | undefined;
  readonly k?: string | undefined;
  readonly s?: number | undefined;
  readonly d?: number | undefined;
  /** Omitted for a successful attempt. */
  readonly o?: AttemptOutcome | undefined;
  readonly h?: number | undefined;
  readonly c?: string | undefined;
}

export type StoredAttempts = readonly StoredAttempt[];

interface Entry {
  readonly upstream?: string | null | undefined;
  readonly model?: string | null | undefined;
}

export const storedAttempts = (attempts: readonly Attempt[], entry: Entry): StoredAttempts =>
  attempts.map(({ upstream, model, key, startedMs, durationMs, outcome, status, code }) => ({
    u: upstream === entry.upstream ? undefined : upstream,
    m: model === entry.model ? undefined : model,
    k: key,
    s: startedMs,
    d: durationMs,
    o: outcome === "succeeded" ? undefined : outcome,
    h: status,
    c: code,
  }));

export function attemptsOf(stored: StoredAttempts, entry: Entry): readonly Attempt[] {
  const upstream = entry.upstream ?? undefined;
  return stored.map(({ u = upstream, m, k, s, d, o = "succeeded", h, c }) => ({
    upstream: u ?? undefined,
    ...(m !== undefined && { model: m }),
    ...(k !== undefined && { key: k }),
    startedMs: s,
    durationMs: d,
    outcome: o,
    ...(h !== undefined && { status: h }),
    ...(c !== undefined && { code: c }),
  }));
}
