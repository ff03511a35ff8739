import { isIPv6 } from "node:net";
import { noCapacity, rateLimited } from "#errors";
import { callQuota, type createLimits } from "./limits.ts";

/** The first half of an IPv6 address: one host may have all of the rest. */
function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const [front = [], back = []] = address.split("::").map((half) => (half === "" ? [] : half.split(":")));
  const zeros = Array.from({ length: Math.max(0, 8 - front.length - back.length) }, () => "0");
  return [...front, ...zeros, ...back].slice(0, 4).join(":");
}

/** Counts requests without a key by their address. Throws 429, and 503 while Redis is unavailable. */
export function createAddressLimit(limits: ReturnType<typeof createLimits>, requestsPerMinute: number) {
  const allowed = { requestsPerMinute, tokensPerMinute: 1, concurrentRequests: Number.MAX_SAFE_INTEGER };

  return async function countAddress(address: string, requestId: string): Promise<void> {
    const quota = callQuota(`address:${networkOf(address)}`, allowed);
    const { reached, waitMs } = await limits.enter(quota, { requestId, ttlMs: 1 }).catch((error: unknown) => {
      throw noCapacity("The limits of calls without a key cannot be checked right now.", 1, error);
    });
    if (reached)
      throw rateLimited(`Too many requests without a key, limit ${requestsPerMinute} a minute.`, waitMs / 1000);
  };
}
