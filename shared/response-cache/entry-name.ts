import { hash } from "node:crypto";
import { canonicalJson } from "./canonical.ts";

/** Callers who share entries: one API key or, with `key: null`, all keys of an account. */
export interface CacheOwner {
  readonly account: string;
  readonly key: string | null;
}

/** Everything of a request that determines its answer. */
export interface CacheableCall {
  readonly endpoint: string;
  /** The model that the path names. */
  readonly model: string | undefined;
  /** The models that the body names. */
  readonly models: readonly string[];
  /** `bytes` for a stream of bytes rather than events. */
  readonly stream: boolean | "bytes";
  readonly framing: string | undefined;
  /** The headers that are forwarded to the provider. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Parameters<typeof canonicalJson>[0];
  /** The caller's own key, which stands for the body. */
  readonly ownKey: string | undefined;
}

/** The Redis keys of one entry. They have the account as their hash tag, so that one script can use all of them. */
export interface EntryName {
  readonly owner: CacheOwner;
  readonly entry: string;
  readonly flight: string;
  /** The place of its text in object storage, if that is large. */
  readonly folder: string;
  /** Entries and flights count only while all of these are what they were when the call began. */
  readonly versions: readonly string[];
}

/** Changed whenever the meaning of entries changes. */
const format = 1;

const digest = (text: string) => hash("sha256", text, "base64url");

export const accountVersion = (account: string): string => `cache:{${account}}:version`;
export const ownKeyVersion = (account: string, ownKey: string): string =>
  `${accountVersion(account)}:${digest(ownKey)}`;

/** Where texts of an account are stored, or those under one of its own keys. */
export const folderOf = (account: string, ownKey: string | undefined): string =>
  ownKey === undefined ? `${account}/` : `${account}/${digest(ownKey)}/`;

/** No two owners share a name: the account and the key are part of what is hashed, and the account of the name itself. */
export function entryName(owner: CacheOwner, call: CacheableCall): EntryName {
  const { account, key } = owner;
  const { endpoint, model = null, models, stream, framing = null, headers, body, ownKey } = call;
  const fixed = JSON.stringify([format, account, key, endpoint, model, stream, framing, headers]);
  const asked = ownKey === undefined ? canonicalJson(body) : `key ${JSON.stringify([models, ownKey])}`;
  const name = `cache:{${account}}:${digest(`${fixed}\n${asked}`)}`;
  const versions = [accountVersion(account), ...(ownKey === undefined ? [] : [ownKeyVersion(account, ownKey)])];
  const folder = `${folderOf(account, ownKey)}${ownKey === undefined ? "body/" : ""}`;
  return { owner, folder, entry: `${name}:entry`, flight: `${name}:flight`, versions };
}
