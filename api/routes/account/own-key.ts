import { insufficientScope } from "#errors";
import type { Caller } from "#keys";

/** Whose calls a key may see: with `manage` all of its account, or those of the key that is asked for; else its own. */
export function visibleKey({ scopes, keyId }: Caller, asked?: string): string | undefined {
  if (scopes.includes("manage")) return asked;
  if (asked !== undefined && asked !== keyId) throw insufficientScope("manage");
  return keyId;
}
