import { invalidValue, noCapacity, type ServiceError, upstreamError, upstreamTimeout } from "#errors";
import type { UpstreamFailure } from "../providers/index.ts";

/** What the caller is told. Nothing of it shows who the upstreams are, but for a refusal of the request itself. */
export function verdict(failures: readonly UpstreamFailure[], someUntried: boolean, waitMs: number): ServiceError {
  const refused = failures.find(({ kind }) => kind === "refused");
  if (refused) return invalidValue(refused.param, refused.message);
  if (someUntried || failures.length === 0 || failures.some(({ kind }) => kind === "busy")) {
    const seconds = Number.isFinite(waitMs) ? Math.min(60, waitMs / 1000) : undefined;
    return noCapacity("No capacity for this model right now.", seconds, failures.at(-1));
  }
  if (failures.every(({ kind }) => kind === "timeout")) return upstreamTimeout("The upstream did not answer in time.");
  return upstreamError("The upstream failed.", failures.at(-1));
}
