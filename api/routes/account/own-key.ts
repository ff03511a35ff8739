import { insufficientScope } from "#errors";
import type { Caller, Keys } from "#keys";

/** The key whose calls the caller may see: its own, or undefined for all of its account with the scope `manage`. */
export const visibleKey = ({ scopes, keyId }: Caller): string | undefined =>
  scopes.includes("manage") ? undefined : keyId;

/**
 * Like `visibleKey`, limited to the key that was asked for. Throws 403 if the caller may not see it, 404 if the account does
 * not have it.
 */
export async function askedKey(keys: Keys, caller: Caller, asked: string | undefined): Promise<string | undefined> {
  const visible = visibleKey(caller);
  if (asked === undefined || asked === visible) return visible;
  if (visible !== undefined) throw insufficientScope("manage");
  return (await keys.get(caller.account, asked)).id;
}
