import { createPrivateKey, type KeyObject } from "node:crypto";
import { readFileSync } from "node:fs";
import { isObject, type JsonObject, text } from "#json";
import type { Environment } from "#platform/process/secret-files";

/** The key of a service account. Everything else in its file could direct tokens to another host, so it is not read. */
export interface ServiceAccount {
  readonly type: "service_account";
  readonly email: string;
  readonly privateKey: KeyObject;
  readonly keyId: string;
  readonly project: string | undefined;
}

/** Workload identity federation: another platform's token, in a file, is exchanged for Google's. */
export interface ExternalAccount {
  readonly type: "external_account";
  readonly audience: string;
  readonly subjectTokenType: string;
  readonly tokenUrl: string;
  readonly file: string;
  /** The field of a JSON file. Undefined for a file that is the token. */
  readonly field: string | undefined;
  /** The address that issues tokens of a service account, if one is impersonated. */
  readonly impersonationUrl: string | undefined;
}

export type Credential =
  | ServiceAccount
  | ExternalAccount
  | { readonly type: "metadata"; readonly host: string }
  | { readonly type: "api_key"; readonly key: string };

/** The credential, location or project cannot be used. The text never contains the credential. */
export class InvalidAccess extends Error {
  override readonly name = "InvalidAccess";
}

/**
 * Reads a credential: an API key, the JSON key of a service account, or the word `identity`, which means the identity of the
 * machine. Without `env` the credential is a customer's, who has no machine here. Throws `InvalidAccess`.
 */
export function readCredential(given: string | undefined, env: Environment | undefined): Credential {
  const credential = given?.trim() ?? "";
  if (credential === "identity") {
    if (env === undefined) throw new InvalidAccess("the credential must be a key, not the identity of a machine");
    return identityOf(env);
  }
  if (credential.startsWith("{")) {
    const { type = "service_account", ...account } = parse(credential, "the credential is not valid JSON");
    if (type === "service_account") return serviceAccount(account);
    throw new InvalidAccess("the credential must be the key of a service account: its type is another");
  }
  // Anything else would be an invalid header.
  if (/^[\w.~+/=-]{16,512}$/.test(credential)) return { type: "api_key", key: credential };
  throw new InvalidAccess("the credential is neither an API key nor the JSON key of a service account");
}

const keyBits = { min: 2_048, max: 4_096 };

function serviceAccount({ client_email, private_key, private_key_id, project_id }: JsonObject): ServiceAccount {
  if (!/^[^\s@]{1,256}@[^\s@]{1,256}$/.test(text(client_email)))
    throw new InvalidAccess("the key of the service account has no client_email");
  if (text(private_key_id) === "") throw new InvalidAccess("the key of the service account has no private_key_id");
  const privateKey = rsaKey(text(private_key));
  return {
    type: "service_account",
    email: text(client_email),
    privateKey,
    keyId: text(private_key_id).slice(0, 256),
    project: text(project_id) || undefined,
  };
}

function rsaKey(pem: string): KeyObject {
  let key: KeyObject | undefined;
  try {
    key = createPrivateKey({ key: pem, format: "pem" });
  } catch {}
  // A signature of a longer key would block the event loop.
  const bits = key?.asymmetricKeyType === "rsa" ? (key.asymmetricKeyDetails?.modulusLength ?? 0) : 0;
  if (key && bits >= keyBits.min && bits <= keyBits.max) return key;
  throw new InvalidAccess(
    `the private_key of the service account is not an RSA key of ${keyBits.min} to ${keyBits.max} bits`,
  );
}

function parse(json: string, otherwise: string): JsonObject {
  try {
    const value: unknown = JSON.parse(json);
    if (isObject(value)) return value;
  } catch {}
  throw new InvalidAccess(otherwise);
}

const fileVariable = "GOOGLE_APPLICATION_CREDENTIALS";

/** The operator's file, else the metadata server of Google's machines. */
function identityOf(env: Environment): Credential {
  const path = env[fileVariable];
  if (!path) return { type: "metadata", host: metadataHost(env["GCE_METADATA_HOST"] || "metadata.google.internal") };
  const account = parse(read(path, fileVariable), `the file of ${fileVariable} is not valid JSON`);
  if (account["type"] === "service_account") return serviceAccount(account);
  if (account["type"] === "external_account") return externalAccount(account);
  throw new InvalidAccess(`the file of ${fileVariable} has a type other than service_account and external_account`);
}

function metadataHost(host: string): string {
  if (/^[\w.-]+(:\d{1,5})?$/.test(host)) return host;
  throw new InvalidAccess("GCE_METADATA_HOST is not a host");
}

function read(path: string, variable: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new InvalidAccess(
      `the file of ${variable} cannot be read: ${(error as NodeJS.ErrnoException).code ?? "unknown"}`,
    );
  }
}

const stsUrl = "https://sts.googleapis.com/v1/token";

/** The whole file is the operator's, so its addresses are trusted, as Google's own clients do. */
function externalAccount(account: JsonObject): ExternalAccount {
  const { audience, subject_token_type, token_url, service_account_impersonation_url, credential_source } = account;
  const { file, format } = isObject(credential_source) ? credential_source : {};
  const { type, subject_token_field_name } = isObject(format) ? format : {};
  if (text(file) === "")
    throw new InvalidAccess(
      `the file of ${fileVariable} has no credential_source.file: other sources are not supported`,
    );
  const missing = Object.entries({ audience, subject_token_type }).find(([, value]) => text(value) === "")?.[0];
  if (missing) throw new InvalidAccess(`the file of ${fileVariable} has no ${missing}`);
  if (type === "json" && text(subject_token_field_name) === "")
    throw new InvalidAccess(`the file of ${fileVariable} has no credential_source.format.subject_token_field_name`);
  const tokenUrl = text(token_url) || stsUrl;
  const impersonationUrl = text(service_account_impersonation_url) || undefined;
  for (const url of [tokenUrl, impersonationUrl ?? tokenUrl])
    if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ""))
      throw new InvalidAccess(`the file of ${fileVariable} has an address that is not an http or https address`);
  return {
    type: "external_account",
    audience: text(audience),
    subjectTokenType: text(subject_token_type),
    tokenUrl,
    file: text(file),
    field: type === "json" ? text(subject_token_field_name) : undefined,
    impersonationUrl,
  };
}
