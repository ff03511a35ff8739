import type { Address } from "@solana/kit";
import { findAssociatedTokenPda, TOKEN_PROGRAM_ADDRESS } from "@solana-program/token";
import type { Rpc } from "#payments";

/** The token program, and Token-2022, whose accounts are others. */
export const tokenPrograms: readonly string[] = [TOKEN_PROGRAM_ADDRESS, "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb"];

/** Where the owner has that token. Throws where there is no such token. */
export async function accountOf(rpc: Rpc, mint: Address, owner: Address, signal: AbortSignal): Promise<Address> {
  const { value } = await rpc.getAccountInfo(mint, { encoding: "base64" }).send({ abortSignal: signal });
  if (!value || !tokenPrograms.includes(value.owner)) throw new Error(`${mint} is no token`);
  const [account] = await findAssociatedTokenPda({ mint, owner, tokenProgram: value.owner });
  return account;
}
