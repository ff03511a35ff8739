import { isIPv6 } from "node:net";
import { noCapacity, rateLimited } from "#errors";
import { callsOf, type createLimits } from "./limits.ts";

/** Of an IPv6 address the first half: one host has all of the rest. */
function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const [front = [], back = []] = address.split("::").map((half) => (half === "" ? [] : half.split(":")));
  const zeros = Array.from({ length: Math.max(0, 8 - front.length - back.length) }, () => "0");
  return [...front, ...zeros, ...back].slice(0, 4).join(":");
}

/** Counts what comes without a key, by the address that it comes from. Throws 429, and 503 while Redis is away. */
export function createAddresses(deps: { limits: ReturnType<typeof createLimits>; requestsPerMinute: number }) {
  const { limits, requestsPerMinute } = deps;
  // Requests alone are limited here.
  const allowed = { requestsPerMinute, tokensPerMinute: 1, concurrentRequests: Number.MAX_SAFE_INTEGER };

  return async function countAddress(address: string, requestId: string): Promise<void> {
    const call = { requestId, ttlMs: 1 };
    const taken = await limits
      .enter(callsOf(`address:${networkOf(address)}`), allowed, call, "any")
      .catch((error: unknown) => {
        throw noCapacity("The limits of calls without a key cannot be checked right now.", 1, error);
      });
    if (taken.reached)
      throw rateLimited(`Too many requests without a key, limit ${requestsPerMinute} a minute.`, taken.waitMs / 1000);
  };
}
