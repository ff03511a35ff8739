import { base, errorOf, unreachable } from "./client.ts";

export interface Called<Answer> {
  readonly answer: Answer;
  readonly requestId: string | null;
  readonly costUsd: string | undefined;
  readonly totalMs: number;
}

/** One call of a model that answers within seconds, without a stream. Throws an ApiError. */
export async function call<Answer>(path: string, body: object): Promise<Called<Answer>> {
  const startedMs = performance.now();
  const response = await fetch(`${base}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  }).catch(unreachable);
  if (!response.ok) throw await errorOf(response);
  const answer = (await response.json()) as Answer;
  return {
    answer,
    requestId: response.headers.get("x-request-id"),
    costUsd: response.headers.get("x-xm-cost-usd") ?? undefined,
    totalMs: performance.now() - startedMs,
  };
}
