/**
 * Customers' own provider keys in a worker, which alone opens their credentials: the endpoint of an upstream with such a
 * credential, what a failure says about it, and the check that the API asks for. A credential is in no log and no error, and
 * the texts of providers are shown without any part of it (`withoutCredential`).
 */
export { createProviderKeyChecker, type ProviderKeyChecker } from "./check.ts";
export { ownEndpoint } from "./endpoint.ts";
export { statusOf, withoutCredential } from "./state.ts";
export { watchProviderKeys } from "./watch.ts";
