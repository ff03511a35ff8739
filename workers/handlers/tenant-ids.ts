import { createHmac } from "node:crypto";
import type { JsonObject } from "#json";

/** The provider shares caches, and its judgement of users, among those who send the same value under the operator's key. */
const sharedFields = [
  "prompt_cache_key",
  "safety_identifier",
  "user",
  // DeepSeek, by which it isolates caches (https://api-docs.deepseek.com/quick_start/rate_limit), and Z.ai.
  "user_id",
] as const;

/**
 * A request in an OpenAI format with the caller's own ids replaced by an HMAC with the account, so that tenants cannot meet.
 * 43 characters: the provider takes up to 64.
 */
export function withTenantIds(request: JsonObject, account: string): JsonObject {
  const ids = sharedFields.flatMap((field) => {
    const value = request[field];
    return typeof value === "string" && value !== "" ? [[field, idOf(account, value)] as const] : [];
  });
  return ids.length > 0 ? { ...request, ...Object.fromEntries(ids) } : request;
}

const idOf = (account: string, value: string) => createHmac("sha256", account).update(value).digest("base64url");
