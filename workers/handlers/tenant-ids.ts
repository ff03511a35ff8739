import { createHmac } from "node:crypto";
import type { JsonObject } from "#json";

/** Providers share caches and abuse ratings among all requests that send the same value under the operator's key. */
const sharedFields = [
  "prompt_cache_key",
  "safety_identifier",
  "user",
  // DeepSeek isolates caches by this field (https://api-docs.deepseek.com/quick_start/rate_limit); Z.ai also has it.
  "user_id",
] as const;

/**
 * Replaces the caller's own ids in a request of an OpenAI format by an HMAC keyed with the account, so that tenants cannot
 * collide. An HMAC has 43 characters; the provider accepts up to 64.
 */
export function withTenantIds(request: JsonObject, account: string): JsonObject {
  const ids = sharedFields.flatMap((field) => {
    const value = request[field];
    return typeof value === "string" && value !== "" ? [[field, idOf(account, value)] as const] : [];
  });
  return ids.length > 0 ? { ...request, ...Object.fromEntries(ids) } : request;
}

const idOf = (account: string, value: string) => createHmac("sha256", account).update(value).digest("base64url");
