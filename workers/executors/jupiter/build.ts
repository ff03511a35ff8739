import { AccountRole, type Address, type Instruction, isAddress } from "@solana/kit";
import { z } from "zod";

const address = z.custom<Address>((value) => typeof value === "string" && isAddress(value), "no address");
const amount = z.string().regex(/^\d{1,20}$/);
const instruction = z.object({
  programId: address,
  accounts: z.array(z.object({ pubkey: address, isSigner: z.boolean(), isWritable: z.boolean() })).max(256),
  data: z.base64(),
});
const instructions = z.array(instruction).max(32);

/** `GET /build`: a quote, and the instructions that would fulfil it. dev.jup.ag, "Swap API" (version 2). */
export const buildShape = z.object({
  inputMint: z.string(),
  outputMint: z.string(),
  inAmount: amount,
  outAmount: amount,
  otherAmountThreshold: amount,
  swapMode: z.literal("ExactIn"),
  slippageBps: z.number(),
  /** A ratio, whatever its name says: "0.001" is 0.1 %. */
  priceImpactPct: z.string().regex(/^-?\d+(\.\d+)?(e-?\d+)?$/i),
  computeBudgetInstructions: instructions,
  setupInstructions: instructions,
  swapInstruction: instruction,
  cleanupInstruction: instruction.nullish(),
  otherInstructions: instructions.default([]),
  /** What the tables hold is read from the chain. */
  addressesByLookupTableAddress: z.record(address, z.unknown()).nullish(),
});
export type Build = z.infer<typeof buildShape>;

export const instructionOf = ({ programId, accounts, data }: z.infer<typeof instruction>): Instruction => ({
  programAddress: programId,
  accounts: accounts.map(({ pubkey, isSigner, isWritable }) => ({
    address: pubkey,
    role: roleOf(isSigner, isWritable),
  })),
  data: Buffer.from(data, "base64"),
});

function roleOf(isSigner: boolean, isWritable: boolean): AccountRole {
  if (isSigner) return isWritable ? AccountRole.WRITABLE_SIGNER : AccountRole.READONLY_SIGNER;
  return isWritable ? AccountRole.WRITABLE : AccountRole.READONLY;
}
