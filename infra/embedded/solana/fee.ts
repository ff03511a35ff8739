import type { Message } from "./transactions.ts";

const computeBudget = "ComputeBudget111111111111111111111111111111";
const signatureLamports = 5_000n;
const unitsOfInstruction = 200_000n;
const mostUnits = 1_400_000n;
const microLamports = 1_000_000n;

/** What the network takes for it: for its signatures, and what it offers for the units that it asks for. */
export function feeOf({ header, instructions, staticAccounts }: Message): bigint {
  const isBudget = (index: number) => staticAccounts[index] === computeBudget;
  const others = instructions.filter(({ programAddressIndex }) => !isBudget(programAddressIndex)).length;
  let [units, price] = [BigInt(others) * unitsOfInstruction, 0n];
  for (const { programAddressIndex, data } of instructions) {
    const bytes = Buffer.from(new Uint8Array(data ?? []));
    if (!isBudget(programAddressIndex)) continue;
    if (bytes[0] === 2 && bytes.length === 5) units = BigInt(bytes.readUInt32LE(1));
    if (bytes[0] === 3 && bytes.length === 9) price = bytes.readBigUInt64LE(1);
  }
  const offered = (units < mostUnits ? units : mostUnits) * price;
  return BigInt(header.numSignerAccounts) * signatureLamports + (offered + microLamports - 1n) / microLamports;
}
