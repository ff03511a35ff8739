/** The networks that have a short name, by CAIP-2: `solana:` and the first 32 characters of the hash of the first block. */
const named = {
  mainnet: { id: "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp", usdc: "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v" },
  devnet: { id: "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1", usdc: "4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU" },
  testnet: { id: "solana:4uhcVJyU9pJkvQyS88uRDiswHXSCkY3z", usdc: "4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU" },
} as const;

export interface Network {
  readonly id: `solana:${string}`;
  /** Unknown on a network of one's own. */
  readonly usdc: string | undefined;
}

/** A short name, or a CAIP-2 id. */
export function networkOf(name: string): Network {
  const known = Object.entries(named).find(([short, { id }]) => name === short || name === id);
  return known ? known[1] : { id: name as Network["id"], usdc: undefined };
}

/** Has the form of a transaction's name on chain. */
export const isSignature = (text: string): boolean => /^[1-9A-HJ-NP-Za-km-z]{64,88}$/.test(text);

/** Whether a chain that began with this block is the network. */
export const beganWith = (network: Network["id"], genesisHash: string): boolean =>
  network === `solana:${genesisHash.slice(0, 32)}`;
