import { zstdCompressSync } from "node:zlib";
import { type Address, type EncodedAccount, isSome, unwrapOption } from "@solana/kit";
import { AccountState, getMintDecoder, TOKEN_PROGRAM_ADDRESS } from "@solana-program/token";
import type { LiteSVM } from "litesvm";
import { invalid, type Options } from "./params.ts";
import { base58, readTokenAccount, uiAmount } from "./tokens.ts";

type View = Pick<Options, "encoding" | "dataSlice">;

const states: Readonly<Record<AccountState, string>> = {
  [AccountState.Uninitialized]: "uninitialized",
  [AccountState.Initialized]: "initialized",
  [AccountState.Frozen]: "frozen",
};
const mintSize = 82;

/** What `jsonParsed` shows of the token program's accounts. Undefined: nothing is known of it. */
function parsed(svm: LiteSVM, { address, data, programAddress }: EncodedAccount) {
  if (programAddress !== TOKEN_PROGRAM_ADDRESS) return undefined;
  const of = (type: string, info: object) => ({
    program: "spl-token",
    parsed: { type, info },
    space: data.length,
  });
  const token = readTokenAccount(svm, address);
  if (token) {
    const { mint, owner, state, amount, isNative } = token;
    const tokenAmount = uiAmount(svm, mint, amount);
    return of("account", { isNative: isSome(isNative), mint, owner, state: states[state], tokenAmount });
  }
  if (data.length !== mintSize) return undefined;
  const { decimals, isInitialized, supply, mintAuthority, freezeAuthority } = getMintDecoder().decode(data);
  const authorities = { mintAuthority: unwrapOption(mintAuthority), freezeAuthority: unwrapOption(freezeAuthority) };
  return of("mint", { decimals, isInitialized, supply: String(supply), ...authorities });
}

function encoded(data: Uint8Array, { encoding = "base64", dataSlice }: View): readonly [string, string] {
  const bytes = dataSlice ? data.subarray(dataSlice.offset, dataSlice.offset + dataSlice.length) : data;
  switch (encoding) {
    case "base64":
    case "jsonParsed":
      return [Buffer.from(bytes).toString("base64"), "base64"];
    case "base58":
      return [base58(bytes), "base58"];
    case "base64+zstd":
      return [zstdCompressSync(bytes).toString("base64"), "base64+zstd"];
    default:
      throw invalid(`unknown encoding ${encoding}`);
  }
}

export function shownAccount(svm: LiteSVM, account: EncodedAccount, view: View) {
  const { executable, lamports, programAddress: owner, space } = account;
  const known = view.encoding === "jsonParsed" ? parsed(svm, account) : undefined;
  const data = known ?? encoded(new Uint8Array(account.data), view);
  return { data, executable, lamports, owner, rentEpoch: 0, space };
}

/** Null where there is no account. */
export function accountAt(svm: LiteSVM, address: Address, view: View) {
  const account = svm.getAccount(address);
  return account.exists ? shownAccount(svm, account, view) : null;
}
