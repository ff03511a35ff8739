import { generateKeyPairSync } from "node:crypto";
import {
  type Address,
  createKeyPairSignerFromBytes,
  getBase58Encoder,
  type KeyPairSigner,
  lamports,
} from "@solana/kit";
import type { LiteSVM } from "litesvm";
import { base58 } from "./tokens.ts";

export interface Wallet {
  readonly address: Address;
  /** 64 bytes in base58, as wallets export it: the seed and the public key. */
  readonly secret: string;
  readonly signer: KeyPairSigner;
}

export function newSecret(): string {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  // The last 32 bytes of both encodings are the key itself.
  const seed = privateKey.export({ type: "pkcs8", format: "der" }).subarray(-32);
  const open = publicKey.export({ type: "spki", format: "der" }).subarray(-32);
  return base58(Buffer.concat([seed, open]));
}

export async function openWallet(secret: string): Promise<Wallet> {
  const signer = await createKeyPairSignerFromBytes(new Uint8Array(getBase58Encoder().encode(secret)));
  return { address: signer.address, secret, signer };
}

export function giveSol(svm: LiteSVM, to: Address, sol: bigint): void {
  svm.airdrop(to, lamports(sol * 1_000_000_000n));
}

/** "1.25" -> 1_250_000n */
export function microUsd(usd: string): bigint {
  const [, whole = "0", fraction = ""] = /^(\d+)(?:[.](\d{1,6}))?$/.exec(usd) ?? [];
  if (!/^\d+([.]\d{1,6})?$/.test(usd)) throw new Error(`${usd} is no amount of USDC.`);
  return BigInt(whole) * 1_000_000n + BigInt(fraction.padEnd(6, "0"));
}
