import { address } from "@solana/kit";

/** The networks whose identifier, genesis hash and USDC mint a chain may have. */
export const networks = {
  mainnet: {
    network: "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp",
    genesis: "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d",
    usdc: address("EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v"),
  },
  devnet: {
    network: "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1",
    genesis: "EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG",
    usdc: address("4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU"),
  },
} as const;
