import { address } from "@solana/kit";
import {
  identifyTokenInstruction,
  parseTransferCheckedInstruction,
  TOKEN_PROGRAM_ADDRESS,
  TokenInstruction,
} from "@solana-program/token";
import { base58, uiAmountOf } from "./tokens.ts";
import { isMemoProgram, type Landed } from "./transactions.ts";

interface Plain {
  readonly programId: string;
  readonly accounts: readonly string[];
  readonly data: Uint8Array;
}

/** What `jsonParsed` shows of what a payment has in it; the rest is shown as it is. */
function known({ programId, accounts, data }: Plain) {
  if (isMemoProgram(programId)) return { program: "spl-memo", parsed: new TextDecoder().decode(data) };
  if (programId !== TOKEN_PROGRAM_ADDRESS || data.length === 0) return undefined;
  if (identifyTokenInstruction(data) !== TokenInstruction.TransferChecked || accounts.length < 4) return undefined;
  const instruction = {
    programAddress: TOKEN_PROGRAM_ADDRESS,
    accounts: accounts.map((each) => ({ address: address(each), role: 0 })),
    data,
  };
  const { amount, decimals } = parseTransferCheckedInstruction(instruction).data;
  const [source, mint, destination, authority] = accounts;
  const info = { source, mint, destination, authority, tokenAmount: uiAmountOf(amount, decimals) };
  return { program: "spl-token", parsed: { type: "transferChecked", info } };
}

/** The form that `encoding: "jsonParsed"` asks for. */
export function asParsed({ transaction, message }: Landed) {
  const { numSignerAccounts, numReadonlySignerAccounts, numReadonlyNonSignerAccounts } = message.header;
  const all = message.staticAccounts;
  const isWritable = (n: number) =>
    n < numSignerAccounts
      ? n < numSignerAccounts - numReadonlySignerAccounts
      : n < all.length - numReadonlyNonSignerAccounts;
  return {
    signatures: Object.values(transaction.signatures).map((signature) => base58(signature ?? new Uint8Array(64))),
    message: {
      accountKeys: all.map((pubkey, n) => ({
        pubkey,
        signer: n < numSignerAccounts,
        writable: isWritable(n),
        source: "transaction",
      })),
      recentBlockhash: message.lifetimeToken,
      instructions: message.instructions.map(({ programAddressIndex, accountIndices = [], data }) => {
        const programId = String(all[programAddressIndex]);
        const accounts = accountIndices.map((index) => String(all[index]));
        const bytes = new Uint8Array(data ?? []);
        const shown = known({ programId, accounts, data: bytes }) ?? { accounts, data: base58(bytes) };
        return { ...shown, programId, stackHeight: 1 };
      }),
      ...(message.version === 0 && { addressTableLookups: [] }),
    },
  };
}
