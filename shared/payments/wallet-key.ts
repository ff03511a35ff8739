import { createKeyPairSignerFromBytes, getBase58Encoder, type KeyPairSigner } from "@solana/kit";
import { configError } from "#platform/config";

/** Base58 of 64 bytes, or the JSON array of them that Solana's own tool writes. Throws `ConfigError` naming the variable. */
export async function walletOf(key: string, variable: string): Promise<KeyPairSigner> {
  try {
    const bytes = key.trimStart().startsWith("[") ? JSON.parse(key) : getBase58Encoder().encode(key.trim());
    return await createKeyPairSignerFromBytes(Uint8Array.from(bytes as Iterable<number>));
  } catch {
    // The cause may show the key.
    const form = "a secret key of 64 bytes, in base58 or as the JSON of a key file";
    throw configError(`${variable}: is not ${form}`);
  }
}
