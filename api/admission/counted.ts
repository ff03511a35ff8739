import type { ServiceError } from "#errors";

/**
 * Whether a refused request stays counted against its key. Our own failures do not, nor does a limit that is worth waiting
 * for; work that goes on elsewhere is no failure.
 */
export function staysCounted({ status, code, shouldRetry }: ServiceError): boolean {
  if (status === 429) return shouldRetry === false;
  return status < 500 || code === "generation_in_progress";
}
