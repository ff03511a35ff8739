/**
 * Sealed values: secrets of customers that MongoDB stores and only workers can read, such as the secrets of webhook
 * endpoints (docs/adr/0033-sealed-secrets.md). Owns no collection: a sealed value is a field of its object's document.
 *
 * HPKE (RFC 9180) in base mode: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-256-GCM. Anyone who has the public key can
 * seal; opening takes the private key. A value is bound to its account and object: moved to another document, it does not
 * open. It has the form `1.<key id>.<base64url of the encapsulated key and the ciphertext>`.
 */
import { createHash, createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { Aes256Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";
import { notConfigured } from "#errors";
import type { Config } from "#platform/config";
import { configError } from "#platform/config-error";

export { type Reseal, type SealedValues, underOtherKey } from "./sealed-values.ts";

export const suite = new CipherSuite({
  kem: new DhkemX25519HkdfSha256(),
  kdf: new HkdfSha256(),
  aead: new Aes256Gcm(),
});
const { encSize } = suite.kem;
const info = Buffer.from("inference-service sealed secret 1");
const form = /^1\.([\w-]{8})\.([\w-]+)$/;

/** Prefixes of a key's 32 bytes in DER (RFC 8410). */
const publicPrefix = Buffer.from("302a300506032b656e032100", "hex");
const privatePrefix = Buffer.from("302e020100300506032b656e04220420", "hex");

const publicKeyFrom = (base64: string): KeyObject =>
  createPublicKey({ key: Buffer.concat([publicPrefix, Buffer.from(base64, "base64")]), format: "der", type: "spki" });
const privateKeyFrom = (base64: string): KeyObject =>
  createPrivateKey({
    key: Buffer.concat([privatePrefix, Buffer.from(base64, "base64")]),
    format: "der",
    type: "pkcs8",
  });
const bytesOf = (publicKey: KeyObject): Buffer => publicKey.export({ format: "der", type: "spki" }).subarray(-32);
/** Tells which key opens a value, and which values are to be sealed again after a rotation. */
const idOf = (publicKey: KeyObject): string =>
  createHash("sha256").update(bytesOf(publicKey)).digest("base64url").slice(0, 8);

const contextOf = (account: string, id: string) => Buffer.from(JSON.stringify([account, id]));

/** The public key of a private key, both as 32 bytes in base64. */
export const publicKeyOf = (privateKey: string): string =>
  bytesOf(createPublicKey(privateKeyFrom(privateKey))).toString("base64");

/** A new value of `SECRETS_PRIVATE_KEYS`: 32 bytes in base64. */
export async function newPrivateKey(): Promise<string> {
  const { privateKey } = await suite.kem.generateKeyPair();
  return Buffer.from(await suite.kem.serializePrivateKey(privateKey)).toString("base64");
}

/** Throws `ConfigError` if the public key belongs to none of the private keys. */
export function createSecrets(config: Pick<Config, "SECRETS_PUBLIC_KEY" | "SECRETS_PRIVATE_KEYS">) {
  const { SECRETS_PUBLIC_KEY, SECRETS_PRIVATE_KEYS } = config;
  const privateKeys = new Map(
    (SECRETS_PRIVATE_KEYS?.split(",") ?? []).map((text) => {
      const key = privateKeyFrom(text);
      return [idOf(createPublicKey(key)), key] as const;
    }),
  );
  const publicKey = SECRETS_PUBLIC_KEY === undefined ? undefined : publicKeyFrom(SECRETS_PUBLIC_KEY);
  const [firstPrivateKey] = privateKeys.values();
  /** The key of new values, as far as this process knows. */
  const currentKey = firstPrivateKey ? createPublicKey(firstPrivateKey) : publicKey;
  if (publicKey && privateKeys.size > 0 && !privateKeys.has(idOf(publicKey)))
    throw configError("SECRETS_PUBLIC_KEY: does not belong to a key of SECRETS_PRIVATE_KEYS");

  function recipientOfNewValues(): KeyObject {
    if (!publicKey) throw notConfigured("SECRETS_PUBLIC_KEY is not set, so no secrets can be stored.");
    return publicKey;
  }

  async function sealFor(recipient: KeyObject, account: string, id: string, text: string): Promise<string> {
    const { enc, ct } = await suite.seal(
      { recipientPublicKey: await suite.kem.deserializePublicKey(bytesOf(recipient)), info },
      Buffer.from(text),
      contextOf(account, id),
    );
    return `1.${idOf(recipient)}.${Buffer.concat([Buffer.from(enc), Buffer.from(ct)]).toString("base64url")}`;
  }

  /**
   * Returns the text. Throws an `Error` without secrets if this process does not have the key, or if the value was
   * changed or sealed for another object or account.
   */
  async function open(account: string, id: string, sealed: string): Promise<string> {
    const [, key = "", encoded = ""] = form.exec(sealed) ?? [];
    const privateKey = privateKeys.get(key);
    if (!privateKey) throw new Error(`No key of SECRETS_PRIVATE_KEYS opens the secret of ${id}.`);
    const bytes = Buffer.from(encoded, "base64url");
    const recipientKey = privateKey.toCryptoKey({ name: "X25519" }, true, ["deriveBits"]);
    const text = await suite
      .open({ recipientKey, enc: bytes.subarray(0, encSize), info }, bytes.subarray(encSize), contextOf(account, id))
      .catch(() => {
        throw new Error(`The secret of ${id} is damaged, or belongs to another object.`);
      });
    return Buffer.from(text).toString();
  }

  return {
    /** Seals a text for an object of an account. Throws `notConfigured` if this process has no public key. */
    async seal(account: string, id: string, text: string): Promise<string> {
      return sealFor(recipientOfNewValues(), account, id, text);
    },

    /** Throws `notConfigured` if this process has no public key. */
    assertSeals(): void {
      recipientOfNewValues();
    },

    open,

    /** The id of the key of new values: in a worker the first private key, in the API the public one. */
    currentKey: currentKey && idOf(currentKey),

    /** Opens a value and seals it under the current key. Throws as `open` does. */
    async reseal(account: string, id: string, sealed: string): Promise<string> {
      const text = await open(account, id, sealed);
      return currentKey ? sealFor(currentKey, account, id, text) : sealed;
    },
  };
}

export type Secrets = ReturnType<typeof createSecrets>;
