import { type Address, type EncodedAccount, lamports } from "@solana/kit";
import type { LiteSVM } from "litesvm";

/** One that is closed has no lamports: so it is not there after a restart either. */
export const left = (svm: LiteSVM, addresses: readonly Address[]): EncodedAccount[] =>
  addresses.flatMap((address) => {
    const account = svm.getAccount(address);
    if (!account.exists) return { address, ...closed };
    return account.executable ? [] : account;
  });

const closed = {
  data: new Uint8Array(),
  executable: false,
  lamports: lamports(0n),
  programAddress: "11111111111111111111111111111111" as Address,
  space: 0n,
};
