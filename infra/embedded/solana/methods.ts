import { type Address, type EncodedAccount, getBase64Decoder, isAddress } from "@solana/kit";
import { z } from "zod";
import type { Commitment } from "./blocks.ts";
import type { Chain, Outcome } from "./chain.ts";
import { RpcError } from "./failures.ts";
import { readTokenAccount, uiAmount } from "./tokens.ts";
import { asJson, decodeSent, decodeUnsigned, isSigned, type Landed, memoOf } from "./transactions.ts";

type Method = (chain: Chain, params: readonly unknown[]) => unknown;

const options = z.object({
  commitment: z.enum(["processed", "confirmed", "finalized"]).default("finalized"),
  encoding: z.string().optional(),
  limit: z.number().int().min(1).max(1000).default(1000),
  before: z.string().optional(),
  until: z.string().optional(),
  maxSupportedTransactionVersion: z.number().optional(),
  accounts: z.object({ addresses: z.array(z.string()).max(64) }).optional(),
  replaceRecentBlockhash: z.boolean().default(false),
  searchTransactionHistory: z.boolean().default(false),
  sigVerify: z.boolean().default(false),
  skipPreflight: z.boolean().default(false),
});
const order: readonly Commitment[] = ["processed", "confirmed", "finalized"];

const invalid = (message: string) => new RpcError(-32602, `Invalid params: ${message}`);

function read<T>(type: z.ZodType<T>, value: unknown): T {
  const parsed = type.safeParse(value);
  if (parsed.success) return parsed.data;
  throw invalid(parsed.error.issues.map((issue) => `${issue.path.join(".")} ${issue.message}`).join("; "));
}
const optionsOf = (value: unknown) => read(options, value ?? {});
const text = (value: unknown): string => read(z.string(), value);
const address = (value: unknown): Address => {
  const given = text(value);
  if (!isAddress(given)) throw invalid(`${given} is no address`);
  return given;
};

const context = (chain: Chain, value: unknown, level: Commitment = "processed") => ({
  context: { apiVersion: "3.0.0", slot: chain.blocks.slot(level) },
  value,
});
const reached = (chain: Chain, { slot }: Landed, level: Commitment): boolean =>
  order.indexOf(chain.blocks.levelOf(slot)) >= order.indexOf(level);

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

function statusOf(chain: Chain, signature: string, history: boolean) {
  const found = chain.find(signature);
  if (!found || !(history || chain.blocks.isRemembered(found.slot))) return null;
  const { slot, err } = found;
  const level = chain.blocks.levelOf(slot);
  const confirmations = level === "finalized" ? null : chain.blocks.slot("processed") - slot;
  return { slot, err, confirmations, confirmationStatus: level, status: err === null ? { Ok: null } : { Err: err } };
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

function transaction(chain: Chain, signature: string, given: z.infer<typeof options>) {
  const found = chain.find(signature);
  if (given.commitment === "processed") throw invalid("Method does not support commitment below `confirmed`");
  if (!found || !reached(chain, found, given.commitment)) return null;
  const { message, slot, blockTime, err, logs, units, lamports, tokens, wire } = found;
  if (message.version !== "legacy" && given.maxSupportedTransactionVersion === undefined)
    throw new RpcError(-32015, "Transaction version (0) is not supported by the requesting client");
  const encoding = given.encoding ?? "json";
  if (encoding !== "json" && encoding !== "base64") throw invalid(`encoding ${encoding} is not served here`);
  return {
    slot,
    blockTime,
    version: message.version,
    transaction: encoding === "json" ? asJson(found) : [wire, "base64"],
    meta: {
      err,
      status: err === null ? { Ok: null } : { Err: err },
      fee: (lamports.before[0] ?? 0n) - (lamports.after[0] ?? 0n),
      preBalances: lamports.before,
      postBalances: lamports.after,
      preTokenBalances: tokens.before,
      postTokenBalances: tokens.after,
      logMessages: logs,
      innerInstructions: [],
      loadedAddresses: { writable: [], readonly: [] },
      rewards: [],
      computeUnitsConsumed: units,
    },
  };
}

function signaturesFor(chain: Chain, at: Address, { commitment, limit, before, until }: z.infer<typeof options>) {
  const all = chain.of(at).filter((each) => reached(chain, each, commitment));
  const from = before === undefined ? 0 : all.findIndex(({ signature }) => signature === before) + 1;
  const end = until === undefined ? -1 : all.findIndex(({ signature }) => signature === until);
  return all
    .slice(from, end === -1 ? undefined : end)
    .slice(0, limit)
    .map((each) => ({
      signature: each.signature,
      slot: each.slot,
      err: each.err,
      memo: memoOf(each),
      blockTime: each.blockTime,
      confirmationStatus: chain.blocks.levelOf(each.slot),
    }));
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
  getTransaction: (chain, [signature, given]) => transaction(chain, text(signature), optionsOf(given)),
  getSignaturesForAddress: (chain, [at, given]) => signaturesFor(chain, address(at), optionsOf(given)),
};
