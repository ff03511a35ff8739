import { z } from "zod";
import { airdropOf } from "./airdrop.ts";
import type { Chain } from "./chain.ts";
import { RpcError } from "./failures.ts";
import { signaturesFor, statusOf, transactionOf } from "./history.ts";
import { context, type Method } from "./method.ts";
import type { Outcome } from "./outcome.ts";
import { address, encodingOf, optionsOf, read, text } from "./params.ts";
import { accountAt, shownAccount } from "./shown-account.ts";
import { decodeSent, decodeUnsigned, isSigned, type Sent } from "./transactions.ts";

const amount = z.number().int().min(1);

const simulated = ({ err, logs, units }: Outcome, accounts: unknown = null) => ({
  err,
  logs,
  unitsConsumed: units,
  accounts,
  returnData: null,
  innerInstructions: null,
});

async function send(chain: Chain, sent: Sent, skipPreflight: boolean): Promise<string> {
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

/** What is sent, and what became of it. */
export const transactionMethods: Readonly<Record<string, Method>> = {
  async simulateTransaction(chain, [wire, given]) {
    const options = optionsOf(given);
    const { sigVerify, replaceRecentBlockhash, accounts } = options;
    const encoding = encodingOf(options);
    if (sigVerify && !(await isSigned(decodeSent(text(wire), encoding))))
      throw new RpcError(-32003, "Transaction signature verification failure");
    const outcome = chain.simulate(decodeUnsigned(text(wire), encoding), replaceRecentBlockhash);
    const after = accounts?.addresses.map((each) => {
      const at = address(each);
      const left = outcome.accounts.find((account) => account.address === at);
      return left ? shownAccount(chain.svm, left, accounts) : accountAt(chain.svm, at, accounts);
    });
    return context(chain, simulated(outcome, outcome.err === null ? after : undefined));
  },
  sendTransaction(chain, [wire, given]) {
    const options = optionsOf(given);
    return send(chain, decodeSent(text(wire), encodingOf(options)), options.skipPreflight);
  },
  requestAirdrop: async (chain, [to, lamports]) =>
    send(chain, decodeSent(await airdropOf(chain, address(to), BigInt(read(amount, lamports)))), false),
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
