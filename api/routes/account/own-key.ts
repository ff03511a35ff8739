import { insufficientScope } from "#errors";
import type { Caller, Keys } from "#keys";

/** Whose calls a key may see: its own, or with `manage` (undefined) all of its account. */
export const visibleKey = ({ scopes, keyId }: Caller): string | undefined =>
  scopes.includes("manage") ? undefined : keyId;

/** The same, of the key that is asked for. Throws 403 for one that may not be seen, 404 for none of the account. */
export async function askedKey(keys: Keys, caller: Caller, asked: string | undefined): Promise<string | undefined> {
  const visible = visibleKey(caller);
  if (asked === undefined || asked === visible) return visible;
  if (visible !== undefined) throw insufficientScope("manage");
  return (await keys.get(caller.account, asked)).id;
}
