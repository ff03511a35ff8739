import { z } from "zod";
import { address, between, count, secret, text, usd } from "./fields.ts";

/** Base58 of 32 bytes: a wallet or a mint on Solana. */
const solanaAddress = z.string().regex(/^[1-9A-HJ-NP-Za-km-z]{32,44}$/, "must be a Solana address");

/** Payments by x402. */
export const x402 = {
  X402_PAY_TO: solanaAddress
    .optional()
    .describe(
      "Wallet that receives x402 payments; it must own a token account for USDC. If unset, payments are disabled",
    ),
  X402_NETWORK: z
    .string()
    .regex(
      /^(mainnet|devnet|testnet|solana:[1-9A-HJ-NP-Za-km-z]{32})$/,
      "must be mainnet, devnet, testnet or solana:<genesis hash>",
    )
    .default("mainnet")
    .describe("Solana network of the payments: mainnet, devnet, testnet, or the CAIP-2 id of another one"),
  X402_ASSET: solanaAddress.optional().describe("Mint of the token that payments use; default: USDC of the network"),
  SOLANA_RPC_URL: address.optional().describe("RPC URL of that network for payments and buybacks").meta(secret),
  X402_FEE_PAYER_KEY: text
    .optional()
    .describe("Secret key of the wallet that submits payments and pays their fees: base58, or the JSON of a key file")
    .meta(secret),
  X402_FACILITATOR_URL: address
    .optional()
    .describe("Address of a facilitator that settles payments, instead of X402_FEE_PAYER_KEY"),
  X402_FACILITATOR_TOKEN: text.optional().describe("Bearer token for the facilitator").meta(secret),
  X402_MAX_COMPUTE_UNITS: count("Maximum compute units that a payment may request", 200_000),
  X402_MAX_PRIORITY_FEE: count("Maximum micro-lamports per compute unit that a payment may offer", 50_000),
  X402_QUOTE_SECONDS: between("Seconds for which a quote can be paid", 60, 3_600, 300),
};

/** What charges buy back. */
export const buybacks = {
  BUYBACK_BPS: between(
    "Share of each charge that is used for buybacks, in basis points; 0 disables them",
    0,
    10_000,
    100,
  ),
  BUYBACK_TOKEN: solanaAddress
    .default("So11111111111111111111111111111111111111112")
    .describe("Mint of the token that is bought back unless another one is chosen; default: wrapped SOL"),
  BUYBACK_TOKENS: z
    .string()
    .optional()
    .describe(
      "Comma-separated list of mints that a caller may choose with `buyback_token`, in addition to BUYBACK_TOKEN",
    ),
  BUYBACK_MINIMUM_USD: usd.default("10.00").describe("USD that must accrue for a token before it is bought"),
  BUYBACK_EXECUTOR: z
    .enum(["record", "jupiter"])
    .default("record")
    .describe(
      "How tokens are bought: `record` only records the amounts that are due, `jupiter` swaps USDC from a wallet",
    ),
  BUYBACK_WALLET_KEY: text
    .optional()
    .describe(
      "Secret key of the wallet that `jupiter` swaps from, with USDC and SOL: base58, or the JSON of a key file",
    )
    .meta(secret),
  BUYBACK_SLIPPAGE_BPS: between(
    "Maximum price impact of a swap, and maximum shortfall of its proceeds against the quote, in basis points",
    1,
    5_000,
    100,
  ),
  JUPITER_BASE_URL: address
    .default("https://api.jup.ag/swap/v2")
    .describe("URL of Jupiter's swap API, with its version"),
  JUPITER_API_KEY: text.optional().describe("API key for Jupiter").meta(secret),
  JUPITER_PROGRAMS: text
    .default("JUP6LkbZbjS1jKKwapdHNy74zcZ3tLUZoi5QNyVTaV4")
    .describe(
      "Comma-separated list of on-chain programs that swaps may call; a transaction that calls any other is not signed",
    ),
};
