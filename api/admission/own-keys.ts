import type { Model } from "#catalog";
import { type CallUpstream, isOwnUpstream } from "#jobs";
import { allowsModel } from "#key-records";
import type { Caller, Keys } from "#keys";
import type { ProviderKey } from "#provider-keys";

/** A caller without a key has none of a provider either. */
export type OwnKeysOwner = Pick<Caller, "account"> & { readonly keyId?: string };

/** The provider keys that a caller may use, whatever the model, in the order in which they are tried. */
export async function ownKeysFor(
  { keys: { providerKeysOf } }: { readonly keys: Pick<Keys, "providerKeysOf"> },
  { account, keyId }: OwnKeysOwner,
): Promise<readonly ProviderKey[]> {
  if (keyId === undefined) return [];
  const keys = await providerKeysOf({ account, keyId });
  return keys.filter(({ keyIds }) => keyIds === null || keyIds.includes(keyId));
}

/** Those of the keys that apply to a model, also if the provider does not accept them any more. */
export const ownKeysAt = (keys: readonly ProviderKey[], { id, upstreams }: Model): readonly ProviderKey[] =>
  keys.filter((key) => allowsModel(key.models, id) && upstreams.some(({ upstream }) => upstream === key.upstream));

/** Returns true if nothing of the call can run at the operator's cost. */
export const usesOnlyOwn = (upstreams: readonly CallUpstream[] | undefined): boolean =>
  upstreams?.every(isOwnUpstream) ?? false;
