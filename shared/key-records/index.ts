/**
 * The records of API keys, for both kinds of process: the API authenticates by them (`api/keys`), and workers watch their
 * budgets and their expiry. Owns the collection `keys`. A secret is stored as a hash.
 *
 * Throws `notFound`, and `invalidValue` for an unknown `after`.
 */
export { type Budget, budgetPeriods, type KeyBudget, periodAt } from "./budget-period.ts";
export {
  defaultKeyCache,
  type KeyCache,
  keysSchema,
  maxCacheTtlSeconds,
  type PromptCache,
  promptCaches,
  type Scope,
  scopes,
} from "./collection.ts";
export {
  allowsModel,
  createKeyStore,
  type KeyPatch,
  type KeyRecord,
  type KeyStore,
  type Limits,
  limitNames,
  secretHash,
} from "./store.ts";
export { type ExpiringKey, expiryDays, type WatchedBudget, type WatchedKey } from "./watch.ts";
