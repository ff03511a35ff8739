/**
 * The keys of customers for providers (docs/guides/own-provider-keys.md): with such a key, calls of its account run at the
 * customer's own account with the provider. Owns the collections `providerKeys` and `providerKeyChecks`.
 *
 * A credential is one text: an API key, or a JSON object. It is stored sealed, bound to the account, the key's id, the
 * upstream and the version (`sealedAs`); only workers open it (`openCredential`), and nothing else of it is stored than its
 * label. Each rotation raises the version, and a note about an earlier version changes nothing.
 *
 * `listFor` is for the admission of calls, which reads it through the cache of `api/keys` (`providerKeysOf`). A worker finds
 * the key of a call by `find`, notes by `noteState` what the provider said about it, and uses by `noteUsed`.
 *
 * The API never opens a credential, so a worker checks it: `checks.begin` stores the check, the queue job `check-provider-key`
 * names it, and the worker stores its outcome by `checks.end`.
 *
 * Throws `notFound`, `conflict`, `rateLimited`, and `invalidValue` for an unknown `after` and for malformed credentials.
 */
import type { Uses } from "#platform/uses";
import { createProviderKeyChecks } from "./checks.ts";
import { openCollections } from "./collection.ts";
import { createSealedValues } from "./sealed-values.ts";
import { createProviderKeyStore } from "./store.ts";

export type { CheckedCredential } from "./checks.ts";
export {
  type ProviderKeyConfig,
  type ProviderKeyMode,
  type ProviderKeyStatus,
  providerKeyModes,
  providerKeyStatuses,
  providerKeysSchema,
} from "./collection.ts";
export { openCredential, sealedAs } from "./sealed-as.ts";
export type { NewCredential, ProviderKey, ProviderKeyFields, ProviderKeyState, SealedProviderKey } from "./store.ts";

export function createProviderKeys({ clock, ...platform }: Uses<"mongo" | "clock">) {
  const { keys, checks } = openCollections(platform);
  return {
    ...createProviderKeyStore({ keys, clock }),
    checks: createProviderKeyChecks({ checks, clock }),
    sealedValues: createSealedValues({ keys }),
  };
}

export type ProviderKeys = ReturnType<typeof createProviderKeys>;
