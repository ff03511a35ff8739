import { UpstreamFailure } from "../provider.ts";

/** What JSON.parse takes at any depth, JSON.stringify does not. */
export function writeJson(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new UpstreamFailure("refused", "The request is nested too deep.");
  }
}
