import { type Address, type EncodedAccount, getBase64Decoder } from "@solana/kit";
import { z } from "zod";
import type { Commitment } from "./blocks.ts";
import type { Chain, Outcome } from "./chain.ts";
import { RpcError } from "./failures.ts";
import { signaturesFor, statusOf, transactionOf } from "./history.ts";
import { address, optionsOf, read, text } from "./params.ts";
import { readTokenAccount, uiAmount } from "./tokens.ts";
import { decodeSent, decodeUnsigned, isSigned } from "./transactions.ts";

type Method = (chain: Chain, params: readonly unknown[]) => unknown;

const context = (chain: Chain, value: unknown, level: Commitment = "processed") => ({
  context: { apiVersion: "3.0.0", slot: chain.blocks.slot(level) },
  value,
});
const simulated = ({ err, logs, units }: Outcome, accounts: unknown = null) => ({
  err,
  logs,
  unitsConsumed: units,
  accounts,
  returnData: null,
  innerInstructions: null,
});

function accountInfo(chain: Chain, at: Address) {
  const account = chain.svm.getAccount(at);
  return account.exists ? shown(account) : null;
}

function shown(account: EncodedAccount) {
  const { data, executable, lamports, programAddress: owner, space } = account;
  return { data: [getBase64Decoder().decode(data), "base64"], executable, lamports, owner, rentEpoch: 0, space };
}

async function send(chain: Chain, wire: string, skipPreflight: boolean): Promise<string> {
  const sent = decodeSent(wire);
  const signed = await isSigned(sent);
  if (!skipPreflight) {
    if (!signed) throw new RpcError(-32003, "Transaction signature verification failure");
    const outcome = chain.simulate(sent, false);
    if (outcome.err !== null)
      throw new RpcError(-32002, `Transaction simulation failed: ${JSON.stringify(outcome.err)}`, simulated(outcome));
  }
  if (signed) chain.land(sent);
  return sent.signature;
}

/** The JSON-RPC methods: a validator's, as far as a payment needs them. */
export const methods: Readonly<Record<string, Method>> = {
  getHealth: () => "ok",
  getGenesisHash: ({ genesis }) => genesis,
  getSlot: (chain, [given]) => chain.blocks.slot(optionsOf(given).commitment),
  getBlockHeight: (chain, [given]) => chain.blocks.slot(optionsOf(given).commitment),
  getLatestBlockhash(chain, [given]) {
    const { commitment } = optionsOf(given);
    const { hash, lastValidHeight } = chain.blocks.latest(commitment);
    return context(chain, { blockhash: hash, lastValidBlockHeight: lastValidHeight }, commitment);
  },
  isBlockhashValid(chain, [hash, given]) {
    const { commitment } = optionsOf(given);
    return context(chain, chain.blocks.isValid(text(hash), commitment), commitment);
  },
  getBalance: (chain, [at]) => context(chain, chain.svm.getBalance(address(at)) ?? 0n),
  getAccountInfo: (chain, [at]) => context(chain, accountInfo(chain, address(at))),
  getMultipleAccounts: (chain, [all]) =>
    context(
      chain,
      read(z.array(z.string()).max(100), all).map((each) => accountInfo(chain, address(each))),
    ),
  getTokenAccountBalance(chain, [at]) {
    const token = readTokenAccount(chain.svm, address(at));
    if (!token) throw new RpcError(-32602, "Invalid param: could not find account");
    return context(chain, uiAmount(chain.svm, token.mint, token.amount));
  },
  async simulateTransaction(chain, [wire, given]) {
    const { sigVerify, replaceRecentBlockhash, accounts } = optionsOf(given);
    if (sigVerify && !(await isSigned(decodeSent(text(wire)))))
      throw new RpcError(-32003, "Transaction signature verification failure");
    const outcome = chain.simulate(decodeUnsigned(text(wire)), replaceRecentBlockhash);
    const after = accounts?.addresses.map((each) => {
      const at = address(each);
      const left = outcome.accounts.find((account) => account.address === at);
      return left ? shown(left) : accountInfo(chain, at);
    });
    return context(chain, simulated(outcome, outcome.err === null ? after : undefined));
  },
  sendTransaction: (chain, [wire, given]) => send(chain, text(wire), optionsOf(given).skipPreflight),
  getSignatureStatuses(chain, [signatures, given]) {
    const { searchTransactionHistory } = optionsOf(given);
    const all = read(z.array(z.string()).max(256), signatures);
    return context(
      chain,
      all.map((each) => statusOf(chain, each, searchTransactionHistory)),
    );
  },
  getTransaction: (chain, [signature, given]) => transactionOf(chain, text(signature), optionsOf(given)),
  getSignaturesForAddress: (chain, [at, given]) => signaturesFor(chain, address(at), optionsOf(given)),
};
