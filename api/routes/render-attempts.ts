import type { Attempt } from "#money";

/** The attempts of a call at upstreams. Undefined fields are absent from the answer. */
export const renderAttempts = (attempts: readonly Attempt[]) =>
  attempts.map(({ upstream, model, startedMs, durationMs, outcome, status, code }) => ({
    upstream: upstream ?? null,
    model,
    started_ms: startedMs ?? null,
    duration_ms: durationMs ?? null,
    outcome,
    status,
    code,
  }));
