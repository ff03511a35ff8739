import {
  type Address,
  type EncodedAccount,
  generateKeyPairSigner,
  getBase64EncodedWireTransaction,
  isAddress,
  lamports,
} from "@solana/kit";
import { TOKEN_PROGRAM_ADDRESS } from "@solana-program/token";
import { z } from "zod";
import { type AccountEncoding, accountJson, amountOfMint, decodeMint, decodeTokenAccount } from "./accounts.ts";
import { type Commitment, commitments } from "./blocks.ts";
import type { Chain } from "./chain.ts";
import { signatureJson, statusJson, transactionEncodings, transactionJson } from "./transaction-json.ts";
import {
  asSent,
  decodeMessage,
  decodeTransaction,
  feeOf,
  isSigned,
  type LandedTransaction,
  type Outcome,
  type SentTransaction,
  signTransfer,
} from "./transactions.ts";

/** A JSON-RPC error; the codes are those of validators. */
export class RpcError extends Error {
  readonly code: number;
  readonly data: unknown;
  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

type Method = (chain: Chain, params: readonly unknown[]) => unknown;

const size = z.number().int().min(0);
const addressParam = z.string().refine(isAddress, { error: ({ input }) => `${String(input)} is not an address` });
const accountEncoding = z.enum(["base58", "base64", "base64+zstd", "jsonParsed"]).default("base64");
const wireEncoding = z.enum(["base58", "base64"]).default("base58");
const transactionEncoding = z.enum(transactionEncodings).default("json");
const tokenFilter = z.union([z.object({ mint: addressParam }), z.object({ programId: addressParam })]);
const optionsParam = z.object({
  commitment: z.enum(commitments).default("finalized"),
  encoding: z.string().optional(),
  dataSlice: z.object({ offset: size, length: size }).optional(),
  limit: z.number().int().min(1).max(1000).default(1000),
  before: z.string().optional(),
  until: z.string().optional(),
  maxSupportedTransactionVersion: z.number().optional(),
  accounts: z.object({ addresses: z.array(addressParam).max(64), encoding: accountEncoding }).optional(),
  replaceRecentBlockhash: z.boolean().default(false),
  searchTransactionHistory: z.boolean().default(false),
  sigVerify: z.boolean().default(false),
  skipPreflight: z.boolean().default(false),
});

const invalidParams = (message: string) => new RpcError(-32602, `Invalid params: ${message}`);
const badSignature = () => new RpcError(-32003, "Transaction signature verification failure");

function parse<T>(type: z.ZodType<T>, value: unknown): T {
  const parsed = type.safeParse(value);
  if (parsed.success) return parsed.data;
  throw invalidParams(parsed.error.issues.map(({ path, message }) => [...path, message].join(" ")).join("; "));
}

const text = (value: unknown) => parse(z.string(), value);
const address = (value: unknown) => parse(addressParam, value);

function optionsOf(value: unknown) {
  const given = value ?? {};
  if (typeof given !== "object") throw invalidParams("options must be an object");
  // Some clients send null for absent options.
  return parse(optionsParam, Object.fromEntries(Object.entries(given).filter(([, each]) => each !== null)));
}

function accountEncodingOf(value: unknown): AccountEncoding {
  const { encoding, dataSlice } = optionsOf(value);
  return { encoding: parse(accountEncoding, encoding), dataSlice };
}

function transaction(wire: unknown, options: z.infer<typeof optionsParam>) {
  const encoding = parse(wireEncoding, options.encoding);
  try {
    return decodeTransaction(text(wire), encoding);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new RpcError(-32602, `failed to deserialize transaction: ${reason}`);
  }
}

const withContext = (chain: Chain, value: unknown, commitment: Commitment = "processed") => ({
  context: { apiVersion: "3.0.0", slot: chain.blocks.slot(commitment) },
  value,
});

function accountAt({ svm }: Chain, at: Address, encoding: AccountEncoding) {
  const account = svm.getAccount(at);
  return account.exists ? accountJson(svm, account, encoding) : null;
}

const slotsInEpoch = 432_000n;
const accountSize = size.max(10_485_760);

const networkMethods: Readonly<Record<string, Method>> = {
  getHealth: () => "ok",
  getVersion: () => ({ "solana-core": "3.0.0", "feature-set": 0 }),
  getGenesisHash: ({ genesis }) => genesis,
  getSlot: ({ blocks }, [options]) => blocks.slot(optionsOf(options).commitment),
  getBlockHeight: ({ blocks }, [options]) => blocks.slot(optionsOf(options).commitment),
  getEpochInfo({ blocks }, [options]) {
    const absoluteSlot = blocks.slot(optionsOf(options).commitment);
    const [epoch, slotIndex] = [absoluteSlot / slotsInEpoch, absoluteSlot % slotsInEpoch];
    return { absoluteSlot, blockHeight: absoluteSlot, epoch, slotIndex, slotsInEpoch, transactionCount: 0 };
  },
  getLatestBlockhash(chain, [options]) {
    const { commitment } = optionsOf(options);
    const { hash, lastValidHeight } = chain.blocks.latest(commitment);
    return withContext(chain, { blockhash: hash, lastValidBlockHeight: lastValidHeight }, commitment);
  },
  isBlockhashValid(chain, [hash, options]) {
    const { commitment } = optionsOf(options);
    return withContext(chain, chain.blocks.isValid(text(hash), commitment), commitment);
  },
  getMinimumBalanceForRentExemption: ({ svm }, [bytes]) =>
    svm.minimumBalanceForRentExemption(BigInt(parse(accountSize, bytes))),
  getFeeForMessage(chain, [base64, options]) {
    const message = decodeMessage(Buffer.from(text(base64), "base64"));
    const isValid = chain.blocks.isValid(message.lifetimeToken, optionsOf(options).commitment);
    return withContext(chain, isValid ? feeOf(message) : null);
  },
  getRecentPrioritizationFees: ({ blocks }) => [{ slot: blocks.slot("processed"), prioritizationFee: 0 }],
};

const accountMethods: Readonly<Record<string, Method>> = {
  getBalance: (chain, [at]) => withContext(chain, chain.svm.getBalance(address(at)) ?? 0n),
  getAccountInfo: (chain, [at, options]) =>
    withContext(chain, accountAt(chain, address(at), accountEncodingOf(options))),
  getMultipleAccounts(chain, [addresses, options]) {
    const encoding = accountEncodingOf(options);
    const all = parse(z.array(addressParam).max(100), addresses);
    return withContext(
      chain,
      all.map((at) => accountAt(chain, at, encoding)),
    );
  },
  getTokenAccountBalance(chain, [at]) {
    const token = decodeTokenAccount(chain.svm.getAccount(address(at)));
    if (!token) throw new RpcError(-32602, "Invalid param: could not find account");
    return withContext(chain, amountOfMint(chain.svm, token.mint, token.amount));
  },
  getTokenSupply(chain, [at]) {
    const mint = decodeMint(chain.svm.getAccount(address(at)));
    if (!mint) throw invalidParams("could not find mint");
    return withContext(chain, amountOfMint(chain.svm, address(at), mint.supply));
  },
  getTokenAccountsByOwner(chain, [at, by, options]) {
    const [owner, filter, encoding] = [address(at), parse(tokenFilter, by), accountEncodingOf(options)];
    const program = "programId" in filter ? filter.programId : TOKEN_PROGRAM_ADDRESS;
    const all = program === TOKEN_PROGRAM_ADDRESS ? chain.svm.getProgramAccounts(program) : [];
    const matches = (account: EncodedAccount) => {
      const token = decodeTokenAccount(account);
      return token?.owner === owner && (!("mint" in filter) || token.mint === filter.mint);
    };
    const found = all.filter(matches);
    return withContext(
      chain,
      found.map((each) => ({ pubkey: each.address, account: accountJson(chain.svm, each, encoding) })),
    );
  },
};

const simulationJson = ({ err, logs, units }: Outcome, accounts: unknown = null) => ({
  err,
  logs,
  unitsConsumed: units,
  accounts,
  returnData: null,
  innerInstructions: null,
});

async function send(chain: Chain, sent: SentTransaction | undefined, skipPreflight = false): Promise<string> {
  if (!sent) throw badSignature();
  const signed = await isSigned(sent);
  if (!skipPreflight) {
    if (!signed) throw badSignature();
    const simulated = chain.simulate(sent, false);
    const message = `Transaction simulation failed: ${JSON.stringify(simulated.err)}`;
    if (simulated.err !== null) throw new RpcError(-32002, message, simulationJson(simulated));
  }
  if (signed) chain.send(sent);
  return sent.signature;
}

const hasReached = ({ blocks }: Chain, { slot }: LandedTransaction, commitment: Commitment): boolean =>
  commitments.indexOf(blocks.commitmentOf(slot)) >= commitments.indexOf(commitment);

const feeLamports = 5_000n;

const transactionMethods: Readonly<Record<string, Method>> = {
  async simulateTransaction(chain, [wire, given]) {
    const options = optionsOf(given);
    const { sigVerify, replaceRecentBlockhash, accounts } = options;
    const decoded = transaction(wire, options);
    if (sigVerify && !(await isSigned(decoded))) throw badSignature();
    const simulated = chain.simulate(decoded, replaceRecentBlockhash);
    const after = accounts?.addresses.map((at) => {
      const changed = simulated.accounts.find((account) => account.address === at);
      return changed ? accountJson(chain.svm, changed, accounts) : accountAt(chain, at, accounts);
    });
    return withContext(chain, simulationJson(simulated, simulated.err === null ? after : null));
  },
  sendTransaction(chain, [wire, given]) {
    const options = optionsOf(given);
    return send(chain, asSent(transaction(wire, options)), options.skipPreflight);
  },
  /** Each airdrop comes from a new wallet, so that no two are the same transaction. */
  async requestAirdrop(chain, [to, amount]) {
    const [receiver, given] = [address(to), BigInt(parse(z.number().int().min(1), amount))];
    const from = await generateKeyPairSigner();
    chain.svm.airdrop(from.address, lamports(given + feeLamports));
    const { hash: blockhash, lastValidHeight: lastValidBlockHeight } = chain.blocks.latest("processed");
    const signed = await signTransfer(from, receiver, given, { blockhash, lastValidBlockHeight });
    return send(chain, asSent(decodeTransaction(getBase64EncodedWireTransaction(signed))));
  },
  getSignatureStatuses(chain, [signatures, options]) {
    const { searchTransactionHistory } = optionsOf(options);
    const statuses = parse(z.array(z.string()).max(256), signatures).map((signature) => {
      const found = chain.find(signature);
      const isVisible = found && (searchTransactionHistory || chain.blocks.isRecent(found.slot));
      return isVisible ? statusJson(chain, found) : null;
    });
    return withContext(chain, statuses);
  },
  getTransaction(chain, [signature, options]) {
    const { commitment, encoding, maxSupportedTransactionVersion } = optionsOf(options);
    const found = chain.find(text(signature));
    if (commitment === "processed") throw invalidParams("Method does not support commitment below `confirmed`");
    if (!found || !hasReached(chain, found, commitment)) return null;
    if (found.message.version !== "legacy" && maxSupportedTransactionVersion === undefined)
      throw new RpcError(-32015, "Transaction version (0) is not supported by the requesting client");
    return transactionJson(found, parse(transactionEncoding, encoding));
  },
  getSignaturesForAddress(chain, [at, options]) {
    const { commitment, limit, before, until } = optionsOf(options);
    const all = chain.transactionsOf(address(at)).filter((each) => hasReached(chain, each, commitment));
    const start = before === undefined ? 0 : all.findIndex(({ signature }) => signature === before) + 1;
    const end = until === undefined ? -1 : all.findIndex(({ signature }) => signature === until);
    const page = all.slice(start, end === -1 ? undefined : end).slice(0, limit);
    return page.map((each) => signatureJson(chain, each));
  },
};

/** The methods of a validator that payments, wallets and block explorers use. */
export const methods: Readonly<Record<string, Method>> = {
  ...networkMethods,
  ...accountMethods,
  ...transactionMethods,
};
