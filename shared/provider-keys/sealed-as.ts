import type { Secrets } from "#secrets";
import type { SealedProviderKey } from "./store.ts";

/** The id under which the credential of a key is sealed. */
export const sealedAs = ({ id, upstream, version }: Pick<SealedProviderKey, "id" | "upstream" | "version">): string =>
  `${id}:${upstream}:${version}`;

/** Throws an `Error` without secrets if this process cannot open it. */
export const openCredential = (
  secrets: Pick<Secrets, "open">,
  key: Pick<SealedProviderKey, "account" | "id" | "upstream" | "version" | "sealed">,
): Promise<string> => secrets.open(key.account, sealedAs(key), key.sealed);
