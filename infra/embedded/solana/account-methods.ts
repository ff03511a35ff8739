import { type Address, isAddress } from "@solana/kit";
import { getMintDecoder, TOKEN_PROGRAM_ADDRESS } from "@solana-program/token";
import { z } from "zod";
import type { Chain } from "./chain.ts";
import { RpcError } from "./failures.ts";
import { context, type Method } from "./method.ts";
import { address, invalid, optionsOf, read } from "./params.ts";
import { accountAt, shownAccount } from "./shown-account.ts";
import { readTokenAccount, uiAmount } from "./tokens.ts";

const known = z.string().refine(isAddress, "is no address");
const tokenFilter = z.union([z.object({ mint: known }), z.object({ programId: known })]);

function mintAt({ svm }: Chain, mint: Address) {
  const account = svm.getAccount(mint);
  if (!account.exists || account.programAddress !== TOKEN_PROGRAM_ADDRESS || account.data.length !== 82)
    throw invalid("could not find mint");
  return getMintDecoder().decode(account.data);
}

/** Accounts as the newest block left them. */
export const accountMethods: Readonly<Record<string, Method>> = {
  getBalance: (chain, [at]) => context(chain, chain.svm.getBalance(address(at)) ?? 0n),
  getAccountInfo: (chain, [at, given]) => context(chain, accountAt(chain.svm, address(at), optionsOf(given))),
  getMultipleAccounts: (chain, [all, given]) =>
    context(
      chain,
      read(z.array(z.string()).max(100), all).map((each) => accountAt(chain.svm, address(each), optionsOf(given))),
    ),
  getTokenAccountBalance(chain, [at]) {
    const token = readTokenAccount(chain.svm, address(at));
    if (!token) throw new RpcError(-32602, "Invalid param: could not find account");
    return context(chain, uiAmount(chain.svm, token.mint, token.amount));
  },
  getTokenSupply(chain, [at]) {
    const mint = address(at);
    return context(chain, uiAmount(chain.svm, mint, mintAt(chain, mint).supply));
  },
  getTokenAccountsByOwner(chain, [at, by, given]) {
    const { svm } = chain;
    const [owner, filter] = [address(at), read(tokenFilter, by)];
    const program = "programId" in filter ? filter.programId : TOKEN_PROGRAM_ADDRESS;
    const all = program === TOKEN_PROGRAM_ADDRESS ? svm.getProgramAccounts(program) : [];
    const found = all.filter((each) => {
      const token = readTokenAccount(svm, each.address);
      return token?.owner === owner && (!("mint" in filter) || token.mint === filter.mint);
    });
    return context(
      chain,
      found.map((each) => ({ pubkey: each.address, account: shownAccount(svm, each, optionsOf(given)) })),
    );
  },
};
